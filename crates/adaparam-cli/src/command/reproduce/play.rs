//! The page of an experiment's trained networks, to play with.

use adaparam_paper::trained::{NETWORKS, TrainedNetwork};
use adaparam_runs::RunError;
use adaparam_runs::run_folder::RunFolder;

use crate::say::{alert, remark};

/// The name of the page.
const PAGE: &str = "explore.html";

/// Keeps trained networks, so that the page can be made again.
pub(super) fn keep(folder: &RunFolder, networks: &[TrainedNetwork]) -> Result<(), RunError> {
    if !networks.is_empty() {
        folder.write_json(NETWORKS, &networks)?;
    }
    Ok(())
}

/// Writes the page of the networks that a folder holds; folders of before hold none.
pub(super) fn write(
    folder: &RunFolder,
    page: impl Fn(&Vec<TrainedNetwork>) -> String,
) -> Result<(), RunError> {
    let path = folder.path().join(NETWORKS);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(());
    };
    match TrainedNetwork::read(&text) {
        Ok(networks) => {
            folder.write(PAGE, page(&networks))?;
            remark!("{}", folder.path().join(PAGE).display());
        }
        Err(problem) => alert!(
            "warning: {}: {problem}: {PAGE} was not written; remove the folder and run the experiment again",
            path.display()
        ),
    }
    Ok(())
}

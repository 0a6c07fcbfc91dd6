//! What is there already is not overwritten.

use std::path::Path;

use adaparam_lm::sweep::Sweep;
use adaparam_paper::kept::{FeedForward, Kept, is_kept_in};
use adaparam_paper::search::SEARCH;
use anyhow::bail;

/// What a folder holds of the finished experiment with this configuration and data.
///
/// # Errors
///
/// If it holds something else that is not to be overwritten.
pub(super) fn kept_or_free<C: FeedForward>(
    config: &C,
    data: Option<(&str, &str)>,
    folder: &Path,
) -> anyhow::Result<Option<Kept<C>>> {
    let kept = Kept::of(config, data, folder);
    if kept.is_none() {
        refuse_to_overwrite(folder)?;
    }
    Ok(kept)
}

/// Refuses a folder that holds a finished experiment with feed-forward networks, a search, or a sweep.
pub(super) fn refuse_to_overwrite(folder: &Path) -> anyhow::Result<()> {
    if folder.join(SEARCH).exists() {
        bail!(
            "{}: holds a search: give --search to go on with it, or name another folder with --out",
            folder.display()
        );
    }
    refuse_experiments(folder)
}

/// Refuses a folder that holds a finished experiment with feed-forward networks, or a sweep.
pub(super) fn refuse_experiments(folder: &Path) -> anyhow::Result<()> {
    if is_kept_in(folder) {
        bail!(
            "{}: holds a finished experiment with other settings: give those of its config.toml, or name another \
             folder with --out",
            folder.display()
        );
    }
    if Sweep::is_in(folder) {
        bail!(
            "{}: holds a sweep of language models: name another folder with --out",
            folder.display()
        );
    }
    Ok(())
}

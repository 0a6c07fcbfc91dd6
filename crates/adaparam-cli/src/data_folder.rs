//! Where data sets are kept on this computer.

use std::env;
use std::path::{Path, PathBuf};

use adaparam_data::data_dir::find_data_dir;
use anyhow::{Context, bail};

/// The folder that was named, which must be there, or that `ADAPARAM_DATA` names, or the user's own.
pub(crate) fn data_folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        if !named.exists() {
            bail!("--data {}: there is no such folder", named.display());
        }
        if !named.is_dir() {
            bail!(
                "--data {}: must be a folder, the one with data sets",
                named.display()
            );
        }
    }
    folder_for_data(named)
}

/// The same folder, which need not be there yet.
pub(crate) fn folder_for_data(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    find_data_dir(named, env::var_os("ADAPARAM_DATA"), default_folder())
        .map(|folder| folder.path)
        .context("no folder for data: name one with --data, or set ADAPARAM_DATA")
}

fn default_folder() -> Option<PathBuf> {
    let data_home = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
    data_home
        .or_else(|| home.map(|home| PathBuf::from(home).join(".local").join("share")))
        .map(|folder| folder.join("adaparam"))
}

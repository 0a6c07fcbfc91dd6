//! Where data sets are kept on this computer.

use std::env;
use std::path::{Path, PathBuf};

use adaparam_data::data_dir::find_data_dir;
use anyhow::Context;

/// The folder that was named, or that `ADAPARAM_DATA` names, or the user's own.
pub(crate) fn data_folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
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

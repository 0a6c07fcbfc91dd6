//! Where data sets are kept on this computer.

use std::env;
use std::path::{Path, PathBuf};

use adaparam_data::DataError;
use adaparam_data::data_dir::find_data_dir;
use adaparam_lm::LmError;
use adaparam_paper::PaperError;
use anyhow::{Context, bail};
use clap::ArgMatches;

use crate::training::shell_word;

/// The folder that was named, which must be there, or that `ADAPARAM_DATA` names, or the user's own.
pub(crate) fn data_folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named.filter(|named| !named.exists()) {
        bail!("--data {}: there is no such folder", named.display());
    }
    folder_for_data(named)
}

/// The same folder, which need not be there yet.
pub(crate) fn folder_for_data(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named.filter(|named| named.exists() && !named.is_dir()) {
        bail!(
            "--data {}: must be a folder, the one with data sets",
            named.display()
        );
    }
    data_place(named)
}

/// The same place, whatever is there.
pub(crate) fn data_place(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    find_data_dir(named, env::var_os("ADAPARAM_DATA"), default_folder())
        .map(|folder| folder.path)
        .context("no folder for data: name one with --data, or set ADAPARAM_DATA")
}

/// The folder that a command line names with --data.
pub(crate) fn named(given: &ArgMatches) -> Option<PathBuf> {
    match given.subcommand() {
        Some((_, below)) => named(below),
        None => given.try_get_one::<PathBuf>("data").ok().flatten().cloned(),
    }
}

/// The command that fetches data sets, with spaces between their names, into the folder that was named, if one was.
pub(crate) fn fetching(sets: &str, named: Option<&Path>) -> String {
    into_named(&format!("adaparam data fetch {sets}"), named)
}

/// The same error, whose command to fetch a data set that is missing fetches it into the folder that was named, if one was.
pub(crate) fn advised(mut error: anyhow::Error, named: Option<&Path>) -> anyhow::Error {
    if let Some(DataError::Missing { fetch, .. }) = fault_of_data(&mut error) {
        *fetch = into_named(fetch, named);
    }
    error
}

fn into_named(fetch: &str, named: Option<&Path>) -> String {
    let folder = named.map_or_else(String::new, |named| {
        format!(" --data {}", shell_word(named))
    });
    format!("{fetch}{folder}")
}

fn fault_of_data(error: &mut anyhow::Error) -> Option<&mut DataError> {
    if error.is::<DataError>() {
        return error.downcast_mut::<DataError>();
    }
    let fault = if error.is::<PaperError>() {
        match error.downcast_mut::<PaperError>()? {
            PaperError::Model(fault) => fault,
            _ => return None,
        }
    } else {
        error.downcast_mut::<LmError>()?
    };
    match fault {
        LmError::Data(fault) => Some(fault),
        _ => None,
    }
}

fn default_folder() -> Option<PathBuf> {
    let data_home = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
    data_home
        .or_else(|| home.map(|home| PathBuf::from(home).join(".local").join("share")))
        .map(|folder| folder.join("adaparam"))
}

//! Downloads of data sets: mirrors in turn, interrupted downloads continued, every file checked by its SHA-256.
//!
//! A file arrives as `name.part`, is checked, synced, and renamed to its final name in one step, so a final name
//! never holds anything but the right content. A `.part` file that is left by an interruption is continued by the
//! next call. Archives (the zip of WikiText-2, the tgz of the Penn Treebank) are downloaded the same way,
//! unpacked one member at a time, and deleted.

mod archive;
mod download;

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::Agent;

use crate::error::{DataError, Result, SourceFailure};
use crate::registry::{RemoteFile, Source};
use crate::verify::{FileState, state_of};
pub use archive::unpack;
use download::{Download, Size};

/// No archive of a data set is larger.
const MAX_ARCHIVE_BYTES: u64 = 1 << 28;

/// How to download.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Asks `{base_url}/{host}/{path}` instead of `https://{host}/{path}`: a mirror of one's own, or a test.
    pub base_url: Option<String>,
    /// Whether to go through a proxy.
    pub proxy: ProxyChoice,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long a server may be silent.
    pub stall_timeout: Duration,
    /// How often a source may fail in a row without sending anything new.
    pub attempts: u32,
    /// How long to wait before asking the same source again.
    pub pause: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            base_url: None,
            proxy: ProxyChoice::Direct,
            connect_timeout: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(30),
            attempts: 3,
            pause: Duration::from_secs(1),
        }
    }
}

/// Whether to go through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyChoice {
    /// Never.
    Direct,
    /// As `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
    FromEnvironment,
}

/// What happens during a download.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchEvent<'a> {
    /// The file is there already, with the right content.
    AlreadyThere {
        /// The file's name.
        file: &'a str,
    },
    /// Bytes have arrived.
    Progress {
        /// The file's name.
        file: &'a str,
        /// The address in use.
        url: &'a str,
        /// Bytes on disk, those of earlier calls included.
        received: u64,
        /// Bytes in all, where known: the size of an archive is not.
        total: Option<u64>,
    },
    /// A source was given up; the next one is tried if there is one.
    SourceFailed {
        /// The file's name.
        file: &'a str,
        /// The address that failed.
        url: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// The file is in its place, with the right content.
    Done {
        /// The file's name.
        file: &'a str,
    },
}

/// Downloads what is missing or wrong in `folder`, which is made if it is not there.
///
/// A wrong file under a final name is replaced. Only one call at a time works in a folder.
pub fn fetch(
    files: &[RemoteFile],
    folder: &Path,
    options: &FetchOptions,
    on_event: &mut dyn FnMut(FetchEvent<'_>),
) -> Result<()> {
    fs::create_dir_all(folder).map_err(DataError::io(folder, "create"))?;
    let _lock = lock(folder)?;
    let mut session = Session {
        folder,
        options,
        agent: download::agent(options),
        archives: HashMap::new(),
    };
    let outcome = files
        .iter()
        .try_for_each(|file| session.fetch_file(file, on_event));
    for archive in session.archives.into_values().flatten() {
        // A leftover archive costs nothing but space.
        let _ = fs::remove_file(archive);
    }
    outcome
}

/// Why a source did not give a file.
enum Fault {
    /// The source failed: another may do.
    Source(String),
    /// The source gave something else, which is removed again.
    Content(String),
    /// This machine failed: no source will do.
    Local(DataError),
}

impl From<DataError> for Fault {
    fn from(error: DataError) -> Self {
        Self::Local(error)
    }
}

type Attempt<T> = std::result::Result<T, Fault>;

struct Session<'a> {
    folder: &'a Path,
    options: &'a FetchOptions,
    agent: Agent,
    /// Every archive that was asked for, by address: whole on disk, or why not.
    archives: HashMap<String, std::result::Result<PathBuf, String>>,
}

impl Session<'_> {
    fn fetch_file(
        &mut self,
        file: &RemoteFile,
        on_event: &mut dyn FnMut(FetchEvent<'_>),
    ) -> Result<()> {
        let path = self.folder.join(&file.name);
        if state_of(&path, file)? == FileState::Ok {
            on_event(FetchEvent::AlreadyThere { file: &file.name });
            return Ok(());
        }
        let part = self.folder.join(format!("{}.part", file.name));
        let mut failures = Vec::new();
        for source in &file.sources {
            let url = self.address(source.url());
            match self.fetch_from(source, &url, file, &part, on_event) {
                Ok(()) => {
                    install(&part, &path)?;
                    on_event(FetchEvent::Done { file: &file.name });
                    return Ok(());
                }
                Err(Fault::Local(error)) => return Err(error),
                Err(Fault::Source(reason) | Fault::Content(reason)) => {
                    on_event(FetchEvent::SourceFailed {
                        file: &file.name,
                        url: &url,
                        reason: &reason,
                    });
                    failures.push(SourceFailure { url, reason });
                }
            }
        }
        Err(DataError::Fetch { path, failures })
    }

    /// Leaves the right content in `part`.
    fn fetch_from(
        &mut self,
        source: &Source,
        url: &str,
        file: &RemoteFile,
        part: &Path,
        on_event: &mut dyn FnMut(FetchEvent<'_>),
    ) -> Attempt<()> {
        let arriving = match source {
            Source::File { .. } => part.to_path_buf(),
            Source::Member { .. } => self.archive_path(url),
        };
        let continues = !self.archives.contains_key(url)
            && fs::metadata(&arriving).is_ok_and(|metadata| metadata.len() > 0);
        match self.fetch_once(source, url, file, part, on_event) {
            // The bytes of an earlier call may be at fault: the source deserves a fresh start.
            Err(Fault::Content(_)) if continues => {
                self.fetch_once(source, url, file, part, on_event)
            }
            outcome => outcome,
        }
    }

    fn fetch_once(
        &mut self,
        source: &Source,
        url: &str,
        file: &RemoteFile,
        part: &Path,
        on_event: &mut dyn FnMut(FetchEvent<'_>),
    ) -> Attempt<()> {
        match source {
            Source::File { .. } => {
                let size = Size::Exactly(file.bytes);
                self.download(url, part, size, &file.name, on_event)?;
            }
            Source::Member { format, member, .. } => {
                let archive = self.archive(url, &file.name, on_event)?;
                match archive::member(&archive, *format, member, file.bytes) {
                    Ok(content) => write(part, &content)?,
                    Err(reason) => {
                        self.archives.remove(url);
                        remove(&archive)?;
                        return Err(Fault::Content(reason));
                    }
                }
            }
        }
        let reason = match state_of(part, file)? {
            FileState::Ok => return Ok(()),
            FileState::Missing => "the download vanished from the disk".into(),
            FileState::WrongSize { expected, found } => {
                format!("wrong content: {found} bytes, expected {expected}")
            }
            FileState::WrongChecksum { expected, found } => {
                format!("wrong content: SHA-256 {found}, expected {expected}")
            }
        };
        remove(part)?;
        Err(Fault::Content(reason))
    }

    /// The whole archive on disk, downloaded once for all the files that it holds.
    fn archive(
        &mut self,
        url: &str,
        file: &str,
        on_event: &mut dyn FnMut(FetchEvent<'_>),
    ) -> Attempt<PathBuf> {
        if let Some(outcome) = self.archives.get(url) {
            return outcome.clone().map_err(Fault::Source);
        }
        let path = self.archive_path(url);
        let size = Size::AtMost(MAX_ARCHIVE_BYTES);
        let outcome = match self.download(url, &path, size, file, on_event) {
            Ok(()) => Ok(path),
            Err(Fault::Source(reason) | Fault::Content(reason)) => Err(reason),
            Err(local) => return Err(local),
        };
        self.archives.insert(url.into(), outcome.clone());
        outcome.map_err(Fault::Source)
    }

    fn download(
        &self,
        url: &str,
        part: &Path,
        size: Size,
        file: &str,
        on_event: &mut dyn FnMut(FetchEvent<'_>),
    ) -> Attempt<()> {
        let total = match size {
            Size::Exactly(bytes) => Some(bytes),
            Size::AtMost(_) => None,
        };
        let download = Download {
            agent: &self.agent,
            options: self.options,
            url,
            part,
            size,
        };
        download.run(&mut |received| {
            on_event(FetchEvent::Progress {
                file,
                url,
                received,
                total,
            });
        })
    }

    fn address(&self, url: &str) -> String {
        match (&self.options.base_url, url.split_once("://")) {
            (Some(base), Some((_, rest))) => format!("{}/{rest}", base.trim_end_matches('/')),
            _ => url.into(),
        }
    }

    fn archive_path(&self, url: &str) -> PathBuf {
        let name = url.rsplit('/').next().unwrap_or_default();
        self.folder.join(format!("{name}.part"))
    }
}

/// Keeps other processes from writing the same `.part` files.
fn lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join(".fetch.lock");
    let file = File::create(&path).map_err(DataError::io(&path, "create"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(DataError::Busy {
            folder: folder.into(),
        }),
        // A file system without locks: better unlocked than not at all.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    File::create(path)
        .and_then(|mut file| file.write_all(content))
        .map_err(DataError::io(path, "write"))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(fault) if fault.kind() != ErrorKind::NotFound => {
            Err(DataError::io(path, "remove")(fault))
        }
        _ => Ok(()),
    }
}

/// Gives a checked file its final name, so that it survives a loss of power too.
fn install(part: &Path, path: &Path) -> Result<()> {
    File::options()
        .write(true)
        .open(part)
        .and_then(|file| file.sync_all())
        .map_err(DataError::io(part, "sync"))?;
    fs::rename(part, path).map_err(DataError::io(path, "rename the download to"))?;
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(DataError::io(folder, "sync"))?;
    }
    Ok(())
}

//! One file out of an archive.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use flate2::bufread::GzDecoder;
use zip::ZipArchive;

use crate::registry::ArchiveFormat;

/// An archive is unpacked no further than this.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;

/// The content of one member, no more than a byte beyond `expected_bytes`; the error is a reason in words.
pub(super) fn member(
    archive: &Path,
    format: ArchiveFormat,
    name: &str,
    expected_bytes: u64,
) -> Result<Vec<u8>, String> {
    let file = File::open(archive).map_err(|fault| damaged(fault.to_string()))?;
    unpack(BufReader::new(file), format, name, expected_bytes)
}

/// The same from anything that can be read like a file.
pub fn unpack(
    file: impl BufRead + Seek,
    format: ArchiveFormat,
    name: &str,
    expected_bytes: u64,
) -> Result<Vec<u8>, String> {
    let limit = expected_bytes.saturating_add(1);
    let found = match format {
        ArchiveFormat::Zip => {
            from_zip(file, name, limit).map_err(|fault| damaged(fault.to_string()))
        }
        ArchiveFormat::TarGz => {
            from_tar_gz(file, name, limit).map_err(|fault| damaged(fault.to_string()))
        }
    };
    found?.ok_or_else(|| format!("the archive holds no `{name}`"))
}

fn damaged(reason: String) -> String {
    format!("the archive cannot be unpacked: {reason}")
}

fn from_zip(
    file: impl BufRead + Seek,
    name: &str,
    limit: u64,
) -> zip::result::ZipResult<Option<Vec<u8>>> {
    let mut archive = ZipArchive::new(file)?;
    let Some(index) = archive.index_for_name(name) else {
        return Ok(None);
    };
    let mut content = Vec::new();
    archive
        .by_index(index)?
        .take(limit)
        .read_to_end(&mut content)?;
    Ok(Some(content))
}

fn from_tar_gz(file: impl BufRead, name: &str, limit: u64) -> std::io::Result<Option<Vec<u8>>> {
    let unpacked = GzDecoder::new(file).take(MAX_UNPACKED_BYTES);
    for entry in tar::Archive::new(unpacked).entries()? {
        let entry = entry?;
        let is_wanted = {
            let path = entry.path()?;
            path.strip_prefix(".").unwrap_or(&path) == Path::new(name)
        };
        if is_wanted {
            let mut content = Vec::new();
            entry.take(limit).read_to_end(&mut content)?;
            return Ok(Some(content));
        }
    }
    Ok(None)
}

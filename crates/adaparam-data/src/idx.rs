//! Files in the idx format of MNIST, plain or gzip-compressed.
//!
//! An idx file is a magic number, one big-endian `u32` per dimension and then the bytes. Nothing is allocated on
//! the word of a header: memory grows with the bytes that are really there, and decompression stops one byte
//! after the declared end.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

use crate::error::{DataError, Result};

/// The most content bytes that are read from one file.
const MAX_CONTENT: u64 = 1 << 30;
/// The largest height or width of an image.
const MAX_SIDE: u64 = 4096;

/// Grey images of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdxImages {
    /// Number of images.
    pub count: usize,
    /// Height in pixels.
    pub rows: usize,
    /// Width in pixels.
    pub columns: usize,
    /// `[count, rows, columns]`, row-major.
    pub pixels: Vec<u8>,
}

/// Reads a file of images.
pub fn read_images(path: &Path) -> Result<IdxImages> {
    parse_images(path, open(path)?)
}

/// Reads a file of labels.
pub fn read_labels(path: &Path) -> Result<Vec<u8>> {
    parse_labels(path, open(path)?)
}

/// Reads images from bytes; `name` is the place that errors name.
pub fn parse_images(name: &Path, source: impl BufRead) -> Result<IdxImages> {
    let ([count, rows, columns], pixels) = parse(
        name,
        source,
        &Kind {
            name: "idx images",
            magic: 0x0000_0803,
            dimensions: [
                ("images", MAX_CONTENT),
                ("rows", MAX_SIDE),
                ("columns", MAX_SIDE),
            ],
        },
    )?;
    Ok(IdxImages {
        count,
        rows,
        columns,
        pixels,
    })
}

/// Reads labels from bytes; `name` is the place that errors name.
pub fn parse_labels(name: &Path, source: impl BufRead) -> Result<Vec<u8>> {
    let ([_], labels) = parse(
        name,
        source,
        &Kind {
            name: "idx labels",
            magic: 0x0000_0801,
            dimensions: [("labels", MAX_CONTENT)],
        },
    )?;
    Ok(labels)
}

/// What a file of `D` dimensions must look like.
struct Kind<const D: usize> {
    name: &'static str,
    magic: u32,
    /// Name and limit of each dimension.
    dimensions: [(&'static str, u64); D],
}

fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).map_err(DataError::io(path, "open"))?;
    Ok(BufReader::new(file))
}

fn parse<const D: usize>(
    path: &Path,
    mut source: impl BufRead,
    kind: &Kind<D>,
) -> Result<([usize; D], Vec<u8>)> {
    let beginning = source.fill_buf().map_err(DataError::io(path, "read"))?;
    if !beginning.starts_with(&[0x1f, 0x8b]) {
        return parse_content(path, source, kind);
    }
    let mut decoder = GzDecoder::new(source);
    let (sizes, content) = parse_content(path, &mut decoder, kind)?;
    let rest = decoder.get_mut().fill_buf();
    if !rest.map_err(DataError::io(path, "read"))?.is_empty() {
        return Err(DataError::IdxTrailing {
            path: path.into(),
            end: "the gzip stream",
            expected: (4 + 4 * D + content.len()) as u64,
        });
    }
    Ok((sizes, content))
}

fn parse_content<const D: usize>(
    path: &Path,
    mut source: impl Read,
    kind: &Kind<D>,
) -> Result<([usize; D], Vec<u8>)> {
    let header_length = 4 + 4 * D as u64;
    let header = read_at_most(path, &mut source, 0, header_length)?;
    let mut words = header
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    let truncated_header = || DataError::IdxTruncated {
        path: path.into(),
        part: "header",
        expected: header_length,
        found: header.len() as u64,
    };

    let magic = words.next().ok_or_else(truncated_header)?;
    if magic != kind.magic {
        return Err(DataError::IdxMagic {
            path: path.into(),
            kind: kind.name,
            expected: kind.magic,
            found: magic,
        });
    }
    let mut sizes = [0; D];
    let mut content_length = 1_u64;
    for (size, (key, limit)) in sizes.iter_mut().zip(kind.dimensions) {
        let value = u64::from(words.next().ok_or_else(truncated_header)?);
        check_size(path, key, value, limit)?;
        *size = value as usize;
        content_length = content_length.saturating_mul(value);
    }
    check_size(path, "content bytes", content_length, MAX_CONTENT)?;

    let mut content = read_at_most(path, &mut source, header_length, content_length + 1)?;
    let found = content.len() as u64;
    if found < content_length {
        return Err(DataError::IdxTruncated {
            path: path.into(),
            part: "content",
            expected: header_length + content_length,
            found: header_length + found,
        });
    }
    if found > content_length {
        return Err(DataError::IdxTrailing {
            path: path.into(),
            end: "the declared content",
            expected: header_length + content_length,
        });
    }
    content.shrink_to_fit();
    Ok((sizes, content))
}

fn check_size(path: &Path, key: &'static str, value: u64, limit: u64) -> Result<()> {
    if (1..=limit).contains(&value) {
        return Ok(());
    }
    Err(DataError::IdxSize {
        path: path.into(),
        key,
        value,
        limit,
    })
}

/// Reads until the end or the limit, whichever comes first; `offset` bytes were read before.
fn read_at_most(path: &Path, source: &mut impl Read, offset: u64, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match source.take(limit).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(fault) => Err(match fault.kind() {
            ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                DataError::GzipCorrupt {
                    path: path.into(),
                    decompressed: offset + bytes.len() as u64,
                    reason: fault.to_string(),
                }
            }
            _ => DataError::io(path, "read")(fault),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    const NAME: &str = "some/file";

    fn images(bytes: &[u8]) -> Result<IdxImages> {
        parse_images(Path::new(NAME), bytes)
    }

    fn labels(bytes: &[u8]) -> Result<Vec<u8>> {
        parse_labels(Path::new(NAME), bytes)
    }

    fn file(magic: u32, sizes: &[u32], content: &[u8]) -> Vec<u8> {
        let words = std::iter::once(&magic).chain(sizes);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(content);
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn small() -> Vec<u8> {
        file(
            0x803,
            &[2, 2, 3],
            &[0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255],
        )
    }

    #[test]
    fn images_come_back_in_file_order() {
        for bytes in [small(), gzip(&small())] {
            let read = images(&bytes).unwrap();
            assert_eq!((read.count, read.rows, read.columns), (2, 2, 3));
            assert_eq!(
                read.pixels,
                [0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255]
            );
        }
    }

    #[test]
    fn labels_come_back_in_file_order() {
        let bytes = file(0x801, &[3], &[7, 0, 9]);
        assert_eq!(labels(&bytes).unwrap(), [7, 0, 9]);
        assert_eq!(labels(&gzip(&bytes)).unwrap(), [7, 0, 9]);
    }

    #[test]
    fn a_label_file_is_no_image_file() {
        let error = images(&file(0x801, &[3], &[7, 0, 9])).unwrap_err();
        assert!(
            matches!(
                error,
                DataError::IdxMagic {
                    expected: 0x803,
                    found: 0x801,
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            "some/file: begins with 0x00000801; idx images begin with 0x00000803: \
             is this another file under a wrong name?"
        );
    }

    #[test]
    fn a_cut_file_says_how_much_is_missing() {
        let error = images(&small()[..20]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "some/file: ends at byte 20, but its content needs 28 bytes; the file is cut short: fetch it again"
        );
        for length in [0, 3, 4, 15] {
            let error = images(&small()[..length]).unwrap_err();
            assert!(
                matches!(error, DataError::IdxTruncated { part: "header", expected: 16, found, .. }
                    if found == length as u64),
                "{error:?}"
            );
        }
    }

    #[test]
    fn bytes_after_the_declared_end_are_an_error() {
        let mut long = small();
        long.push(0);
        for bytes in [long.clone(), gzip(&long)] {
            let error = images(&bytes).unwrap_err();
            assert!(
                matches!(
                    error,
                    DataError::IdxTrailing {
                        end: "the declared content",
                        expected: 28,
                        ..
                    }
                ),
                "{error:?}"
            );
        }
        let mut after_gzip = gzip(&small());
        after_gzip.push(0);
        let error = images(&after_gzip).unwrap_err();
        assert!(
            matches!(
                error,
                DataError::IdxTrailing {
                    end: "the gzip stream",
                    ..
                }
            ),
            "{error:?}"
        );
    }

    #[test]
    fn damaged_gzip_data_is_an_error() {
        let good = gzip(&small());
        let mut wrong_checksum = good.clone();
        let checksum = good.len() - 8;
        wrong_checksum[checksum] ^= 1;
        let cut = &good[..good.len() - 3];
        let header_only = &good[..6];
        for bytes in [&wrong_checksum[..], cut, header_only] {
            let error = images(bytes).unwrap_err();
            assert!(matches!(error, DataError::GzipCorrupt { .. }), "{error:?}");
        }
    }

    #[test]
    fn absurd_sizes_are_refused_before_anything_is_read() {
        for (sizes, bad) in [
            ([0, 28, 28], "images"),
            ([10, 0, 28], "rows"),
            ([10, 28, 5_000], "columns"),
            ([u32::MAX, 28, 28], "images"),
            ([1 << 20, 4_096, 4_096], "content bytes"),
        ] {
            let error = images(&file(0x803, &sizes, &[])).unwrap_err();
            assert!(
                matches!(error, DataError::IdxSize { key, .. } if key == bad),
                "{error:?}"
            );
        }
        let largest = images(&file(0x803, &[1 << 20, 32, 32], &[1])).unwrap_err();
        assert!(
            matches!(largest, DataError::IdxTruncated { found: 17, .. }),
            "{largest:?}"
        );
    }

    #[test]
    fn a_gzip_bomb_is_read_no_further_than_its_header_declares() {
        let bomb = gzip(&file(0x801, &[3], &vec![0; 50_000_000]));
        let error = labels(&bomb).unwrap_err();
        assert!(
            matches!(error, DataError::IdxTrailing { expected: 11, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_labels(Path::new("no/such/labels")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("no/such/labels: cannot open: ")
        );
    }

    fn any_image_file() -> impl Strategy<Value = (u32, u32, u32, Vec<u8>)> {
        (1_u32..6, 1_u32..6, 1_u32..6).prop_flat_map(|(count, rows, columns)| {
            let pixels = proptest::collection::vec(any::<u8>(), (count * rows * columns) as usize);
            (Just(count), Just(rows), Just(columns), pixels)
        })
    }

    proptest! {
        #[test]
        fn written_images_are_read_back(
            (count, rows, columns, pixels) in any_image_file(),
            compressed in any::<bool>(),
        ) {
            let mut bytes = file(0x803, &[count, rows, columns], &pixels);
            if compressed {
                bytes = gzip(&bytes);
            }
            let read = images(&bytes).unwrap();
            prop_assert_eq!(
                (read.count, read.rows, read.columns),
                (count as usize, rows as usize, columns as usize)
            );
            prop_assert_eq!(read.pixels, pixels);
        }

        #[test]
        fn every_truncation_is_a_typed_error(
            (count, rows, columns, pixels) in any_image_file(),
            compressed in any::<bool>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = file(0x803, &[count, rows, columns], &pixels);
            if compressed {
                bytes = gzip(&bytes);
            }
            bytes.truncate(cut.index(bytes.len()));
            let error = images(&bytes).unwrap_err();
            prop_assert!(
                matches!(error, DataError::IdxTruncated { .. } | DataError::GzipCorrupt { .. }),
                "{error:?}"
            );
        }

        #[test]
        fn a_mutated_file_is_read_or_refused_but_never_panics(
            (count, rows, columns, pixels) in any_image_file(),
            compressed in any::<bool>(),
            mutations in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = file(0x803, &[count, rows, columns], &pixels);
            if compressed {
                bytes = gzip(&bytes);
            }
            for (place, value) in mutations {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            if let Ok(read) = images(&bytes) {
                prop_assert_eq!(read.pixels.len(), read.count * read.rows * read.columns);
            }
            let _ = labels(&bytes);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = images(&bytes);
            let _ = labels(&bytes);
        }
    }
}

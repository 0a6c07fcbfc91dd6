//! The MNIST digits: 60,000 training and 10,000 test images of 28×28 pixels.

use std::path::{Path, PathBuf};

use crate::error::{DataError, Result};
use crate::idx::{self, IdxImages};
use crate::images::{ImageSet, ImageSplit};

const CLASSES: usize = 10;
const SIDE: usize = 28;

/// Reads the four idx files in `folder`.
///
/// Each may be plain or end in `.gz`, and may have a dot instead of the dash before `idx`
/// (`train-images.idx3-ubyte`). Any number of images is accepted, so that a person may use a part.
pub fn load(folder: &Path) -> Result<ImageSplit> {
    Ok(ImageSplit {
        train: load_set(folder, "train")?,
        test: load_set(folder, "t10k")?,
    })
}

fn load_set(folder: &Path, part: &str) -> Result<ImageSet> {
    let images_path = find(folder, &format!("{part}-images"), "idx3-ubyte")?;
    let labels_path = find(folder, &format!("{part}-labels"), "idx1-ubyte")?;

    let IdxImages {
        count,
        rows,
        columns,
        pixels,
    } = idx::read_images(&images_path)?;
    if (rows, columns) != (SIDE, SIDE) {
        return Err(DataError::ImageDimensions {
            path: images_path,
            rows,
            columns,
            expected_rows: SIDE,
            expected_columns: SIDE,
        });
    }

    let labels = idx::read_labels(&labels_path)?;
    if labels.len() != count {
        return Err(DataError::LabelCount {
            labels_path,
            labels: labels.len(),
            images_path,
            images: count,
        });
    }
    let is_wrong = |&label: &u8| usize::from(label) >= CLASSES;
    if let Some(index) = labels.iter().position(is_wrong) {
        return Err(DataError::LabelRange {
            path: labels_path,
            index,
            label: labels[index],
            classes: CLASSES,
        });
    }
    Ok(ImageSet::new(
        (SIDE, SIDE),
        CLASSES,
        u8::MAX,
        pixels,
        labels,
    ))
}

/// The first of the names of one file that exists.
fn find(folder: &Path, stem: &str, kind: &str) -> Result<PathBuf> {
    let names = [
        format!("{stem}-{kind}.gz"),
        format!("{stem}-{kind}"),
        format!("{stem}.{kind}.gz"),
        format!("{stem}.{kind}"),
    ];
    let found = names
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file());
    found.ok_or_else(|| DataError::missing(folder, names.into()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn images(count: u32, rows: u32, columns: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> = [0x803, count, rows, columns]
            .iter()
            .flat_map(|word: &u32| word.to_be_bytes())
            .collect();
        bytes.extend((0..count * rows * columns).map(|pixel| pixel as u8));
        bytes
    }

    fn labels(labels: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = [0x801, labels.len() as u32]
            .iter()
            .flat_map(|word: &u32| word.to_be_bytes())
            .collect();
        bytes.extend(labels);
        bytes
    }

    fn small_mnist() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name, bytes| fs::write(folder.path().join(name), bytes).unwrap();
        write("train-images-idx3-ubyte", images(3, 28, 28));
        write("train-labels-idx1-ubyte", labels(&[5, 0, 9]));
        write("t10k-images.idx3-ubyte", images(2, 28, 28));
        write("t10k-labels.idx1-ubyte", labels(&[1, 2]));
        folder
    }

    #[test]
    fn both_sets_are_read_under_either_spelling_of_their_names() {
        let folder = small_mnist();
        let split = load(folder.path()).unwrap();
        assert_eq!(split.train.labels(), [5, 0, 9]);
        assert_eq!(split.test.labels(), [1, 2]);
        assert_eq!(split.train.image(0)[..3], [0, 1, 2]);
        assert_eq!((split.train.height(), split.train.width()), (28, 28));
    }

    #[test]
    fn a_missing_file_is_named_with_its_folder() {
        let folder = small_mnist();
        fs::remove_file(folder.path().join("t10k-labels.idx1-ubyte")).unwrap();
        let message = load(folder.path()).unwrap_err().to_string();
        assert!(message.starts_with(&folder.path().display().to_string()));
        assert!(message.contains("`t10k-labels-idx1-ubyte.gz`"), "{message}");
    }

    #[test]
    fn images_must_be_28_pixels_square() {
        let folder = small_mnist();
        let path = folder.path().join("t10k-images.idx3-ubyte");
        fs::write(path, images(2, 28, 27)).unwrap();
        let error = load(folder.path()).unwrap_err();
        assert!(
            matches!(
                error,
                DataError::ImageDimensions {
                    rows: 28,
                    columns: 27,
                    ..
                }
            ),
            "{error:?}"
        );
    }

    #[test]
    fn there_must_be_as_many_labels_as_images() {
        let folder = small_mnist();
        let path = folder.path().join("train-labels-idx1-ubyte");
        fs::write(path, labels(&[5, 0])).unwrap();
        let error = load(folder.path()).unwrap_err();
        assert!(
            matches!(
                error,
                DataError::LabelCount {
                    labels: 2,
                    images: 3,
                    ..
                }
            ),
            "{error:?}"
        );
    }

    #[test]
    fn labels_must_be_digits() {
        let folder = small_mnist();
        let path = folder.path().join("train-labels-idx1-ubyte");
        fs::write(path, labels(&[5, 10, 0])).unwrap();
        let error = load(folder.path()).unwrap_err();
        assert!(
            matches!(
                error,
                DataError::LabelRange {
                    index: 1,
                    label: 10,
                    ..
                }
            ),
            "{error:?}"
        );
    }
}

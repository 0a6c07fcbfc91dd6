//! 1,797 handwritten digits of 8×8 pixels, embedded: a small stand-in for MNIST that needs no download.
//!
//! The images are the test set of *Optical Recognition of Handwritten Digits* (E. Alpaydin and C. Kaynak, UCI
//! Machine Learning Repository, 1998, CC BY 4.0) in the form that scikit-learn ships; `data/digits` holds the
//! licence and the description. Pixels run from 0 to 16.
//!
//! The split keeps the order of the file: the first 1,347 images train, the last 450 test. The file is ordered
//! by writer, so, as in MNIST, most of the test images come from hands that no training image shows. Accuracies
//! are lower than those after a shuffle, which puts every hand on both sides.

use std::io::Read;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

use crate::images::{ImageSet, ImageSplit};

/// Images that train.
const TRAIN_IMAGES: usize = 1_347;
/// Images that test.
const TEST_IMAGES: usize = 450;

const SIDE: usize = 8;
const CLASSES: usize = 10;
const MAX_VALUE: u8 = 16;

static COMPRESSED: &[u8] = include_bytes!("../data/digits/digits.csv.gz");

/// The embedded digits, decoded on first use.
pub fn load() -> &'static ImageSplit {
    static SPLIT: OnceLock<ImageSplit> = OnceLock::new();
    SPLIT.get_or_init(decode)
}

fn decode() -> ImageSplit {
    let mut text = String::new();
    GzDecoder::new(COMPRESSED)
        .read_to_string(&mut text)
        .expect("the embedded digits are gzip-compressed ASCII");
    let mut rows = text.lines().map(|line| -> Vec<u8> {
        line.split(',')
            .map(|field| {
                field
                    .parse()
                    .expect("the embedded digits are small integers")
            })
            .collect()
    });
    ImageSplit {
        train: take(&mut rows, TRAIN_IMAGES),
        test: take(&mut rows, TEST_IMAGES),
    }
}

/// A set of the next rows: the pixels, then the label.
fn take(rows: &mut impl Iterator<Item = Vec<u8>>, count: usize) -> ImageSet {
    let mut pixels = Vec::with_capacity(count * SIDE * SIDE);
    let mut labels = Vec::with_capacity(count);
    for mut row in rows.take(count) {
        labels.extend(row.pop());
        pixels.append(&mut row);
    }
    ImageSet::new((SIDE, SIDE), CLASSES, MAX_VALUE, pixels, labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_1797_images_in_two_sets() {
        let split = load();
        assert_eq!(split.train.len(), 1_347);
        assert_eq!(split.test.len(), 450);
        assert_eq!(split.train.pixels_per_image(), 64);
        assert_eq!(split.train.pixels().iter().max(), Some(&16));
    }

    #[test]
    fn the_first_image_is_the_zero_of_the_original_file() {
        let train = &load().train;
        assert_eq!(train.labels()[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(train.image(0)[..8], [0, 0, 5, 13, 9, 1, 0, 0]);
        assert_eq!(train.image(0)[56..], [0, 0, 6, 13, 10, 0, 0, 0]);
    }

    #[test]
    fn every_class_is_common_in_both_sets() {
        for set in [&load().train, &load().test] {
            let mut counts = [0; CLASSES];
            for &label in set.labels() {
                counts[usize::from(label)] += 1;
            }
            let even = set.len() / CLASSES;
            assert!(
                counts
                    .iter()
                    .all(|&count| 10 * count > 9 * even && 10 * count < 11 * even),
                "{counts:?}"
            );
        }
    }
}

//! Labelled grey images, whatever data set they come from.

use sha2::{Digest, Sha256};

use crate::checksum::Checksum;

/// Bytes of a cache line on the processors that are common; on others, some lines are looked at twice or not at all.
const CACHE_LINE: usize = 64;

/// Images of one size with a class label each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSet {
    width: usize,
    height: usize,
    classes: usize,
    max_value: u8,
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl ImageSet {
    /// A set of `labels.len()` images; `pixels` is `[n, height, width]`, row-major, from 0 to `max_value`.
    ///
    /// # Panics
    /// If the set is empty, the number of pixels is not `n · height · width`, or a label or pixel is out of its
    /// range: readers check what they read.
    pub fn new(
        (height, width): (usize, usize),
        classes: usize,
        max_value: u8,
        pixels: Vec<u8>,
        labels: Vec<u8>,
    ) -> Self {
        assert!(!labels.is_empty(), "an image set holds at least one image");
        assert_eq!(
            pixels.len(),
            labels.len() * height * width,
            "pixels of {} images of {height}×{width}",
            labels.len()
        );
        assert!(
            labels.iter().all(|&label| usize::from(label) < classes),
            "labels must be below {classes}"
        );
        assert!(
            max_value > 0 && pixels.iter().all(|&pixel| pixel <= max_value),
            "pixels must be at most {max_value}"
        );
        Self {
            width,
            height,
            classes,
            max_value,
            pixels,
            labels,
        }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no image; never so for a set made by [`ImageSet::new`].
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Width of an image in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height of an image in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Pixels of one image, `height · width`.
    pub fn pixels_per_image(&self) -> usize {
        self.width * self.height
    }

    /// Number of classes; labels are below it.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The largest value that a pixel can have.
    pub fn max_value(&self) -> u8 {
        self.max_value
    }

    /// All pixels, `[n, height, width]`, row-major.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// All labels, `[n]`.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// The pixels of one image, `[height, width]`, row-major.
    ///
    /// # Panics
    /// If `index` is not below [`ImageSet::len`].
    pub fn image(&self, index: usize) -> &[u8] {
        let size = self.pixels_per_image();
        &self.pixels[index * size..(index + 1) * size]
    }

    /// The sum of the content: dimensions, classes, range, pixels and labels.
    pub fn checksum(&self) -> Checksum {
        let mut hasher = Sha256::new();
        let sizes = [self.len(), self.height, self.width, self.classes];
        for size in sizes {
            hasher.update((size as u64).to_le_bytes());
        }
        hasher.update([self.max_value]);
        hasher.update(&self.pixels);
        hasher.update(&self.labels);
        Checksum::from(hasher)
    }
}

/// A training set and the test set that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSplit {
    /// What models learn from.
    pub train: ImageSet,
    /// What they are judged on.
    pub test: ImageSet,
}

impl ImageSplit {
    /// The sum of both sets, for run records.
    pub fn checksum(&self) -> Checksum {
        let sums = [self.train.checksum(), self.test.checksum()];
        Checksum::of(sums.map(|sum| *sum.as_bytes()).concat())
    }
}

/// How pixels become numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scaling {
    /// From 0 to 1.
    Raw01,
    /// Mean 0 and standard deviation 1 over all pixels of the training set.
    Standardised,
    /// Mean 0 and standard deviation 1 over the training set for every place of an image by itself.
    EachPlaceStandardised,
}

/// A [`Scaling`] with the statistics of a training set.
#[derive(Debug, Clone)]
pub struct PixelScaler {
    mean: f64,
    deviation: f64,
    max_value: u8,
    lines: Lines,
}

/// A pixel of value `v` becomes `v · slope + offset`: unlike a table of numbers, this is done for many pixels at once.
#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f32,
    offset: f32,
}

#[derive(Debug, Clone)]
enum Lines {
    /// The same for every place of an image.
    One(Line),
    /// One for each.
    EachPlace(Vec<Line>),
}

impl Line {
    /// Takes `centre` to 0 and what is `unit` above it to 1, both on the scale from 0 to 1.
    fn new(max: f64, centre: f64, unit: f64) -> Self {
        Self {
            slope: (1.0 / (max * unit)) as f32,
            offset: (-centre / unit) as f32,
        }
    }

    /// Takes the mean to 0 and the deviation to 1; where all pixels are equal they become 0.
    fn standardising(max: f64, (mean, deviation): (f64, f64)) -> Self {
        let unit = if deviation > 0.0 { deviation } else { 1.0 };
        Self::new(max, mean, unit)
    }

    fn number(self, pixel: u8) -> f32 {
        f32::from(pixel) * self.slope + self.offset
    }
}

impl PixelScaler {
    /// Takes the statistics from `train`; use the same scaler for the test set.
    ///
    /// Where all pixels are equal they are standardised to 0.
    pub fn fit(scaling: Scaling, train: &ImageSet) -> Self {
        let max = f64::from(train.max_value);
        let (mean, deviation) = mean_and_deviation(train.pixels.iter().copied(), max);
        let lines = match scaling {
            Scaling::Raw01 => Lines::One(Line::new(max, 0.0, 1.0)),
            Scaling::Standardised => Lines::One(Line::standardising(max, (mean, deviation))),
            Scaling::EachPlaceStandardised => {
                let size = train.pixels_per_image();
                let at = |place: usize| train.pixels.iter().skip(place).step_by(size).copied();
                let line = |place| Line::standardising(max, mean_and_deviation(at(place), max));
                Lines::EachPlace((0..size).map(line).collect())
            }
        };
        Self {
            mean,
            deviation,
            max_value: train.max_value,
            lines,
        }
    }

    /// Mean of the training pixels, on the scale from 0 to 1.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard deviation of the training pixels, on the scale from 0 to 1.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Slope and offset: a pixel of value `v` becomes `v · slope + offset`. None where that differs from place to place.
    pub fn line(&self) -> Option<(f32, f32)> {
        match self.lines {
            Lines::One(line) => Some((line.slope, line.offset)),
            Lines::EachPlace(_) => None,
        }
    }

    /// All images as numbers, `[n, height · width]`, row-major.
    ///
    /// # Panics
    /// If `images` has larger pixel values than the training set can have, or images of another size where places differ.
    pub fn scale(&self, images: &ImageSet) -> Vec<f32> {
        self.check(images);
        let mut numbers = Vec::with_capacity(images.pixels.len());
        self.append(&images.pixels, &mut numbers);
        numbers
    }

    /// The images of these indices as numbers, `[indices.len(), height · width]`, and their labels.
    ///
    /// # Panics
    /// If an index is not below [`ImageSet::len`], or as [`PixelScaler::scale`] does.
    pub fn batch(&self, images: &ImageSet, indices: &[usize]) -> (Vec<f32>, Vec<u8>) {
        self.check(images);
        let mut numbers = Vec::with_capacity(indices.len() * images.pixels_per_image());
        call_up(images, indices);
        for &index in indices {
            self.append(images.image(index), &mut numbers);
        }
        let labels = indices.iter().map(|&index| images.labels[index]).collect();
        (numbers, labels)
    }

    fn append(&self, pixels: &[u8], numbers: &mut Vec<f32>) {
        match &self.lines {
            Lines::One(line) => numbers.extend(pixels.iter().map(|&pixel| line.number(pixel))),
            Lines::EachPlace(lines) => {
                for image in pixels.chunks_exact(lines.len()) {
                    let pairs = image.iter().zip(lines);
                    numbers.extend(pairs.map(|(&pixel, line)| line.number(pixel)));
                }
            }
        }
    }

    fn check(&self, images: &ImageSet) {
        assert!(
            images.max_value <= self.max_value,
            "pixels up to {} for a scaler of pixels up to {}",
            images.max_value,
            self.max_value
        );
        if let Lines::EachPlace(lines) = &self.lines {
            let size = images.pixels_per_image();
            assert!(
                size == lines.len(),
                "images of {size} pixels for a scaler of images of {}",
                lines.len()
            );
        }
    }
}

/// Looks at the images once, so that the processor's cache has them.
///
/// Images of a batch lie far apart. Where each is waited for when its turn comes, half the time of making a batch goes into waiting; a
/// look at a byte of every cache line waits for many of them at once.
fn call_up(images: &ImageSet, indices: &[usize]) {
    let mut all = 0;
    for &index in indices {
        for line in images.image(index).chunks(CACHE_LINE) {
            all ^= line[0];
        }
    }
    std::hint::black_box(all);
}

/// Exact sums of integers first, so that the order of the pixels does not matter.
fn mean_and_deviation(pixels: impl Iterator<Item = u8>, max: f64) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0_u64, 0_u64, 0_u64);
    for pixel in pixels {
        let pixel = u64::from(pixel);
        count += 1;
        sum += pixel;
        squares += pixel * pixel;
    }
    let count = count as f64;
    let mean = sum as f64 / count;
    let variance = squares as f64 / count - mean * mean;
    (mean / max, variance.max(0.0).sqrt() / max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pixels: &[u8], labels: &[u8]) -> ImageSet {
        ImageSet::new((1, 2), 10, 16, pixels.to_vec(), labels.to_vec())
    }

    #[test]
    fn images_are_rows_of_the_pixels() {
        let images = set(&[1, 2, 3, 4, 5, 6], &[7, 8, 9]);
        assert_eq!(images.len(), 3);
        assert_eq!(images.image(1), [3, 4]);
    }

    #[test]
    fn raw_pixels_run_from_zero_to_one() {
        let images = set(&[0, 16, 8, 4], &[0, 1]);
        let scaler = PixelScaler::fit(Scaling::Raw01, &images);
        assert_eq!(scaler.scale(&images), [0.0, 1.0, 0.5, 0.25]);
    }

    #[test]
    fn standardised_training_pixels_have_mean_zero_and_deviation_one() {
        let images = set(&[0, 16, 3, 7, 9, 11], &[0, 1, 2]);
        let scaler = PixelScaler::fit(Scaling::Standardised, &images);
        let numbers = scaler.scale(&images);
        let n = numbers.len() as f32;
        let mean = numbers.iter().sum::<f32>() / n;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n;
        assert!(mean.abs() < 1e-6, "{mean}");
        assert!((variance - 1.0).abs() < 1e-5, "{variance}");
    }

    #[test]
    fn equal_pixels_are_standardised_to_zero() {
        let images = set(&[5; 4], &[0, 1]);
        let scaler = PixelScaler::fit(Scaling::Standardised, &images);
        assert_eq!(scaler.scale(&images), [0.0; 4]);
    }

    #[test]
    fn every_place_can_be_standardised_by_itself() {
        let images = set(&[0, 5, 16, 5, 8, 5], &[0, 1, 2]);
        let scaler = PixelScaler::fit(Scaling::EachPlaceStandardised, &images);
        let numbers = scaler.scale(&images);
        let first: Vec<f32> = numbers.iter().step_by(2).copied().collect();
        let unit = 1.5_f32.sqrt();
        for (number, expected) in first.iter().zip([-unit, unit, 0.0]) {
            assert!((number - expected).abs() < 1e-6, "{first:?}");
        }
        // The second place is the same in every image.
        assert!(
            numbers
                .iter()
                .skip(1)
                .step_by(2)
                .all(|&number| number == 0.0)
        );
        assert_eq!(scaler.batch(&images, &[1]).0, numbers[2..4]);
        assert!(scaler.line().is_none());
    }

    #[test]
    fn a_batch_is_a_choice_of_rows() {
        let images = set(&[0, 16, 8, 4, 16, 16], &[3, 4, 5]);
        let scaler = PixelScaler::fit(Scaling::Raw01, &images);
        let (numbers, labels) = scaler.batch(&images, &[2, 0, 2]);
        assert_eq!(numbers, [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(labels, [5, 3, 5]);
    }

    #[test]
    fn the_checksum_sees_every_part() {
        let sum = set(&[1, 2], &[3]).checksum();
        assert_eq!(sum, set(&[1, 2], &[3]).checksum());
        assert_ne!(sum, set(&[1, 3], &[3]).checksum());
        assert_ne!(sum, set(&[1, 2], &[4]).checksum());
        let turned = ImageSet::new((2, 1), 10, 16, vec![1, 2], vec![3]);
        assert_ne!(sum, turned.checksum());
        let two = |first: &[u8], second: &[u8]| ImageSplit {
            train: set(first, &[0]),
            test: set(second, &[0]),
        };
        assert_ne!(
            two(&[1, 2], &[3, 4]).checksum(),
            two(&[3, 4], &[1, 2]).checksum()
        );
    }

    #[test]
    #[should_panic(expected = "labels must be below 10")]
    fn a_label_beyond_the_classes_is_refused() {
        set(&[1, 2], &[10]);
    }
}

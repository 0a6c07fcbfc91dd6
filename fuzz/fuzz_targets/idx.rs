//! Images and labels in the format of MNIST, plain or compressed.
#![no_main]

use adaparam_data::idx::{parse_images, parse_labels};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(images) = parse_images("x".as_ref(), bytes) {
        assert_eq!(
            images.pixels.len(),
            images.count * images.rows * images.columns
        );
    }
    let _ = parse_labels("x".as_ref(), bytes);
});

//! Images and labels that a fuzzer has compressed well, so that it reaches what is inside.
#![no_main]

use std::io::Write;

use adaparam_data::idx::{parse_images, parse_labels};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    let mut packed = packed.finish().unwrap();
    let _ = parse_images("x".as_ref(), packed.as_slice());
    let _ = parse_labels("x".as_ref(), packed.as_slice());
    // Cut off, and with something after the end.
    packed.extend(bytes);
    let _ = parse_images("x".as_ref(), packed.as_slice());
    packed.truncate(packed.len() / 2);
    let _ = parse_images("x".as_ref(), packed.as_slice());
});

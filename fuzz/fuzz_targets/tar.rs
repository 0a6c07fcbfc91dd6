//! A member of a compressed tar archive; what the fuzzer gives is compressed first, so that it reaches the headers.
#![no_main]

use std::io::{Cursor, Write};

use adaparam_data::fetch::unpack;
use adaparam_data::registry::ArchiveFormat;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(bytes).unwrap();
    for bytes in [packed.finish().unwrap().as_slice(), bytes] {
        if let Ok(content) = unpack(Cursor::new(bytes), ArchiveFormat::TarGz, "a.txt", 1000) {
            assert!(content.len() <= 1001);
        }
    }
});

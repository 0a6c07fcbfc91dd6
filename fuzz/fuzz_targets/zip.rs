//! A member of a zip archive.
#![no_main]

use std::io::Cursor;

use adaparam_data::fetch::unpack;
use adaparam_data::registry::ArchiveFormat;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(content) = unpack(Cursor::new(bytes), ArchiveFormat::Zip, "a.txt", 1000) {
        assert!(content.len() <= 1001);
    }
});

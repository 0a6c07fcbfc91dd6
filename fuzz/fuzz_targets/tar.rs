//! A member of a compressed tar archive. What the fuzzer gives is compressed first, so that it reaches the headers; one that
//! is compressed already is read as it is.
#![no_main]

use std::io::Cursor;

use adaparam_data::fetch::unpack;
use adaparam_data::registry::ArchiveFormat;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let packed = match bytes {
        [0x1f, 0x8b, ..] => bytes.to_vec(),
        _ => adaparam_fuzz::gzip(bytes),
    };
    if let Ok(content) = unpack(
        Cursor::new(packed.as_slice()),
        ArchiveFormat::TarGz,
        "a.txt",
        1000,
    ) {
        assert!(content.len() <= 1001);
    }
});

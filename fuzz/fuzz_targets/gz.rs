//! Images and labels that are compressed well, so that the fuzzer reaches what is inside. The last byte says what happens to
//! the compressed file: decompressing is most of the work, and one input is decompressed once.
#![no_main]

use adaparam_data::idx::{parse_images, parse_labels};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, content)) = bytes.split_last() else {
        return;
    };
    let mut packed = adaparam_fuzz::gzip(content);
    match choice >> 1 & 3 {
        0 => packed.truncate(packed.len() / 2),
        // A sum, or a length, that is wrong.
        1 => {
            let at = packed.len() - 1 - usize::from(choice >> 3 & 7);
            packed[at] ^= choice | 1;
        }
        2 => packed.extend(content),
        _ => {}
    }
    if choice & 1 == 0 {
        let _ = parse_images("x".as_ref(), packed.as_slice());
    } else {
        let _ = parse_labels("x".as_ref(), packed.as_slice());
    }
});

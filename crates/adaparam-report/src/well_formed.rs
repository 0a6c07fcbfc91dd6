//! A check that markup is well-formed XML, as every drawing is.

use roxmltree::{Document, ParsingOptions};

/// Panics with the place where tags do not nest, a bare `&` or `<` stands, an attribute comes twice, or a character is
/// one that XML forbids.
pub(crate) fn assert_well_formed(markup: &str) {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    if let Err(fault) = Document::parse_with_options(markup, options) {
        panic!("{fault}: {markup}");
    }
}

//! A check that markup is well-formed XML, as every drawing is.

use roxmltree::{Document, ParsingOptions};

/// Panics with the place where tags do not nest, a bare `&` or `<` stands, an attribute comes twice, or a character is
/// one that XML forbids.
pub(crate) fn assert_well_formed(markup: &str) {
    parsed(markup);
}

/// The elements of well-formed markup.
pub(crate) fn parsed(markup: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(markup, options)
        .unwrap_or_else(|fault| panic!("{fault}: {markup}"))
}

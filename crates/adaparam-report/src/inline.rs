//! Text with code in it.

/// A stretch of text of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span<'a> {
    Plain(&'a str),
    Code(&'a str),
}

/// Splits text at its backticks. A backtick without a partner is itself.
pub(crate) fn spans(text: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some((before, (code, after))) = rest
        .split_once('`')
        .and_then(|(before, inside)| Some((before, inside.split_once('`')?)))
    {
        spans.push(Span::Plain(before));
        spans.push(Span::Code(code));
        rest = after;
    }
    spans.push(Span::Plain(rest));
    spans.retain(|span| !matches!(span, Span::Plain("")));
    spans
}

/// The text without the marks of its code.
pub(crate) fn plain(text: &str) -> String {
    spans(text)
        .into_iter()
        .map(|span| match span {
            Span::Plain(text) | Span::Code(text) => text,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stands_between_backticks() {
        assert_eq!(
            spans("run `a b` now"),
            [Span::Plain("run "), Span::Code("a b"), Span::Plain(" now")]
        );
        assert_eq!(plain("run `a b` now"), "run a b now");
    }

    #[test]
    fn a_single_backtick_is_itself() {
        assert_eq!(spans("a ` b"), [Span::Plain("a ` b")]);
        assert_eq!(spans(""), []);
    }
}

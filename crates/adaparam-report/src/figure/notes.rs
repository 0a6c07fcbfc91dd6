//! Sentences that figures write about themselves.

use crate::number::count;

/// Sentences about values that are missing from a figure.
pub(super) fn omissions(
    undrawable: usize,
    beyond: usize,
    noun: &str,
    positive_only: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if undrawable > 0 {
        let rule = if positive_only {
            "finite and positive"
        } else {
            "finite"
        };
        let verb = if undrawable == 1 { "is" } else { "are" };
        notes.push(format!(
            "Not shown: {} that {verb} not {rule}.",
            count(undrawable, noun)
        ));
    }
    if beyond > 0 {
        notes.push(format!("Beyond the axes: {}.", count(beyond, noun)));
    }
    notes
}

/// Sentences as one text, without the empty ones.
pub(super) fn joined<'a>(sentences: impl IntoIterator<Item = &'a str>) -> String {
    let sentences: Vec<&str> = sentences
        .into_iter()
        .filter(|sentence| !sentence.is_empty())
        .collect();
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_missing_needs_no_note() {
        assert!(omissions(0, 0, "point", false).is_empty());
    }

    #[test]
    fn notes_agree_in_number() {
        assert_eq!(
            omissions(1, 0, "point", false),
            ["Not shown: 1 point that is not finite."]
        );
        assert_eq!(
            omissions(2, 1, "value", true),
            [
                "Not shown: 2 values that are not finite and positive.",
                "Beyond the axes: 1 value."
            ]
        );
    }

    #[test]
    fn empty_sentences_leave_no_gap() {
        assert_eq!(joined(["", "a.", "", "b."]), "a. b.");
    }
}

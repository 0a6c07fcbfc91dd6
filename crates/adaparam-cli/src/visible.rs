//! What is shown on a terminal, and what only files and pipes are given.

use std::io::IsTerminal;

pub(crate) use adaparam_report::visible;
use anyhow::bail;

/// Refuses `--raw` where a terminal would obey what it is given.
pub(crate) fn refuse_raw_on_a_terminal(raw: bool) -> anyhow::Result<()> {
    if raw && std::io::stdout().is_terminal() {
        bail!(
            "--raw: standard output is a terminal, which may obey what it is given: name a file with > FILE"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json() {
        let value =
            serde_json::json!({"text": "a\u{1b}b\u{7f}c\u{9b}d\r\n\u{202e}\u{e0041}👩\u{200d}👧"});
        let line = value.to_string();
        let shown = visible(&line);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
        assert!(!shown.contains(char::is_control), "{shown}");
    }
}

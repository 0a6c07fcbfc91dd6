//! Pages shown by the system's browser.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::say::remark;

/// Asks the system to show a page, by its path or address. That it does not is no reason to fail: the page is there.
pub(crate) fn show(page: impl AsRef<OsStr>) {
    let page = page.as_ref();
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(page);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let why = match command.status() {
        Ok(status) if status.success() => return,
        Ok(status) => format!("{program} ended with {status}"),
        Err(error) => format!("{program}: {error}"),
    };
    remark!(
        "note: the page could not be opened ({why}): open {} yourself",
        page.display()
    );
}

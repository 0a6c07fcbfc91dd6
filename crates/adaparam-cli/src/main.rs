//! The adaparam command.
fn main() {}

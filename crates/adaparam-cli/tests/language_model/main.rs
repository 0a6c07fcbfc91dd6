//! Language models by the real binary, in fresh folders.

// A test that has nothing to compare with says so.
#![allow(clippy::print_stderr)]

mod bench;
mod binding;
mod bolt_ons;
mod bottleneck;
mod cells;
#[cfg(unix)]
mod clusters;
mod command_line;
mod commands;
mod crashes;
mod curves;
mod damage;
mod elsewhere;
mod explain;
mod going_on;
mod mixture;
mod own_sweep;
mod own_text;
mod precision;
mod pytorch;
mod recipes;
mod resume;
mod runs;
mod strangers;
mod sweep;
mod terminal;
mod tiny_run;
mod version_1;

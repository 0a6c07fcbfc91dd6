//! Language models by the real binary, in fresh folders.

mod commands;
mod pytorch;
mod resume;
mod tiny_run;

//! Recurrent cells against their equations: golden numbers, gradients, laws, and all that every cell can do.

mod case;
mod equations;
mod everywhere;
mod given;
mod golden;
mod gradients;
mod laws;
mod packed;
mod tape;
mod vectors;

//! adaparam-train

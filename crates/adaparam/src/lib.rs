//! adaparam

//! adaparam-data

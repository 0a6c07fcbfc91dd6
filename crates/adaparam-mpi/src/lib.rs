//! A [`Team`](adaparam_lm::Team) of processes that MPI has started, with the feature `mpi`; nothing without it.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "mpi")]
mod calls;
#[cfg(feature = "mpi")]
mod team;

#[cfg(feature = "mpi")]
pub use calls::abort;
#[cfg(feature = "mpi")]
pub use team::MpiTeam;

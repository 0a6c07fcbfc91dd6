//! Matrix products on packed panels.
//!
//! The right operand is packed into panels of [`Simd::PANEL`](crate::simd::Simd::PANEL) columns. A product of few rows with
//! weights that are used at every step of a window ([`Panels`], [`product`]) packs once and streams the panels; a product
//! over the rows of a whole window ([`transposed_product`]) packs both operands as it goes, or leaves the left one where it lies
//! if its owner laid it out for that.
//!
//! Each element of a result is one chain of multiply-adds over `k`, cut at multiples of fixed block sizes. Neither threads nor
//! tiles change it.
//!
//! Panels of narrow numbers hold two rows of the matrix at a time. In `bf16` (`halves`) the chain goes over the second number of a
//! pair first, then over the first, as dot-product instructions do, and products of two are exact in `f32`: so it is the
//! same chain, to the bit, wherever nothing is smaller than the smallest normal number. In bytes (`bytes`) sums are whole
//! numbers, and exact.

mod bytes;
mod halves;
mod left_in_place;
mod micro;
mod pack;
#[cfg(target_arch = "x86_64")]
pub(crate) mod paired;
mod panels;
mod rounded;
mod strips;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tiled;
#[cfg(target_arch = "x86_64")]
mod tiles;
mod transposed;

pub(crate) use halves::RoundInPlace;
pub(crate) use left_in_place::{packed_length, transposed_tiles};
pub use pack::{GROUP, Group, Panels, Source, contiguous_groups};
pub(crate) use pack::{pad, unit_groups};
pub use panels::product;
pub(crate) use panels::{product_of_rows, tile};
pub(crate) use rounded::Phase;
pub use rounded::rounded_bytes;
pub(crate) use strips::Form;
pub(crate) use transposed::{Common, Factor, transposed_products};
pub use transposed::{Scratch, transposed_product};

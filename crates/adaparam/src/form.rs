//! What a module's numbers mean, kept beside them.
//!
//! Two modules can have parameters of the same shapes and read them differently: the same policy vector, cut in other
//! places. So each carries numbers that say how it reads, and a record that says otherwise is refused when it is loaded.

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// The form of a module as a parameter that is saved and compared, never trained. `differs` puts into words how a record's
/// numbers are another form than these.
pub(crate) fn form(
    codes: Vec<i32>,
    device: &Device,
    differs: impl Fn(&[i32]) -> String + Send + Sync + 'static,
) -> Param<Tensor<1, Int>> {
    let count = codes.len();
    let tensor = Tensor::from_data(TensorData::new(codes.clone(), [count]), device);
    Param::initialized(ParamId::new(), tensor).load_mapper(move |loaded: Tensor<1, Int>| {
        let found: Vec<i32> = loaded.to_data().iter().collect();
        assert!(found == codes, "{}", differs(&found));
        loaded
    })
}

use std::sync::{Arc, Weak};

use adaparam_kernels::Path;
use burn::backend::flex::FlexTensor;
use burn::tensor::Bytes;

use crate::located::slice;

/// The weights that a runner has packed. They are packed anew only if they have changed: where one word follows the other,
/// packing would take longer than all the rest.
#[derive(Default)]
pub(crate) struct PackedWeights {
    path: Option<Path>,
    numbers: Vec<Numbers>,
}

impl PackedWeights {
    /// Calls `pack` unless `weights` are those of the last call, and packed for the same path.
    pub(super) fn renew(&mut self, path: Path, weights: &[FlexTensor], pack: impl FnOnce()) {
        let numbers: Vec<Numbers> = weights.iter().map(Numbers::of).collect();
        if self.path != Some(path) || self.numbers != numbers {
            // Should packing panic, what it leaves behind is nobody's.
            self.path = None;
            pack();
            *self = Self {
                path: Some(path),
                numbers,
            };
        }
    }
}

/// Which numbers a tensor holds, without keeping them.
///
/// Numbers that compare equal have not changed in between. The weak reference keeps their storage from being given to
/// others, and from being written to: writing needs an `Arc` without other references, weak ones included, or moves the
/// numbers to a new one.
struct Numbers {
    storage: Weak<Bytes>,
    /// Where they start in memory.
    address: usize,
    len: usize,
}

impl Numbers {
    fn of(tensor: &FlexTensor) -> Self {
        let numbers = slice(tensor);
        Self {
            storage: Arc::downgrade(&tensor.data_arc()),
            address: numbers.as_ptr().addr(),
            len: numbers.len(),
        }
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        self.storage.ptr_eq(&other.storage)
            && (self.address, self.len) == (other.address, other.len)
    }
}

#[cfg(test)]
mod tests {
    use adaparam_kernels::{Engine, Precision};
    use burn::tensor::TensorData;

    use super::*;

    /// Counts how often weights had to be packed.
    #[derive(Default)]
    struct Packing {
        packed: PackedWeights,
        times: usize,
    }

    fn count(packing: &mut Packing, weights: &[FlexTensor]) -> usize {
        let path = Engine::new(1).path();
        packing.packed.renew(path, weights, || packing.times += 1);
        packing.times
    }

    fn weights() -> [FlexTensor; 2] {
        let tensor = |values: [f32; 2]| FlexTensor::from_data(TensorData::from(values));
        [tensor([1.0, 2.0]), tensor([3.0, 4.0])]
    }

    #[test]
    fn weights_are_packed_once_as_long_as_they_stay() {
        let mut packing = Packing::default();
        let weights = weights();
        assert_eq!(count(&mut packing, &weights), 1);
        assert_eq!(count(&mut packing, &weights.clone()), 1);
    }

    #[test]
    fn weights_are_packed_again_for_another_precision() {
        let (mut packing, weights) = (Packing::default(), weights());
        assert_eq!(count(&mut packing, &weights), 1);
        let half = Engine::new(1).in_precision(Precision::Bf16).path();
        packing.packed.renew(half, &weights, || packing.times += 1);
        assert_eq!(packing.times, 2);
    }

    #[test]
    fn weights_that_change_where_they_lie_are_packed_again() {
        let mut packing = Packing::default();
        let mut weights = weights();
        assert_eq!(count(&mut packing, &weights), 1);
        let before = slice(&weights[1]).as_ptr();
        weights[1].storage_mut::<f32>()[0] = 5.0;
        assert_eq!(slice(&weights[1]).as_ptr(), before);
        assert_eq!(count(&mut packing, &weights), 2);
    }

    #[test]
    fn other_weights_are_packed_even_if_they_take_the_place_of_the_old_ones() {
        let mut packing = Packing::default();
        for times in 1..=5 {
            assert_eq!(count(&mut packing, &weights()), times);
        }
    }

    #[test]
    fn a_part_of_the_same_storage_is_another_weight() {
        let mut packing = Packing::default();
        let [whole, _] = weights();
        let parts = [0, 1].map(|start| whole.narrow(0, start, 1));
        assert_eq!(count(&mut packing, &parts[..1]), 1);
        assert_eq!(count(&mut packing, &parts[1..]), 2);
    }
}

use adaparam::recurrent::{Masks, Recurrent, Slot, State};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};

/// A stream of numbers that its seed decides, whatever other tests do.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number between -1 and 1.
    pub(crate) fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }

    /// A tensor of numbers between `±bound`.
    pub(crate) fn tensor<const D: usize>(
        &mut self,
        shape: [usize; D],
        bound: f32,
        device: &Device,
    ) -> Tensor<D> {
        let len = shape.iter().product();
        let values: Vec<f32> = (0..len).map(|_| bound * self.next()).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    /// A mask that drops a third.
    pub(crate) fn mask(&mut self, shape: [usize; 2], device: &Device) -> Tensor<2> {
        let kept = self.tensor(shape, 1.0, device).greater_elem(-1.0 / 3.0);
        kept.float().mul_scalar(1.5)
    }

    /// A mask at every site.
    pub(crate) fn masks(&mut self, sites: &[Slot], batch: usize, device: &Device) -> Masks {
        let none = Masks::none(sites.to_vec());
        sites.iter().fold(none, |masks, site| {
            masks.with(&site.name, Some(self.mask([batch, site.width], device)))
        })
    }

    /// A state of `stack`.
    pub(crate) fn state(&mut self, stack: &dyn Recurrent, batch: usize, device: &Device) -> State {
        let zeros = stack.zero_state(batch, device);
        zeros.map_named(|_, zeros| self.tensor(zeros.dims(), 0.8, device))
    }

    /// The module with parameters for which no gate saturates.
    pub(crate) fn fill<M: Module>(&mut self, module: M, device: &Device) -> M {
        module.map(&mut Filler {
            numbers: self,
            device,
        })
    }
}

struct Filler<'a> {
    numbers: &'a mut Numbers,
    device: &'a Device,
}

impl ModuleMapper for Filler<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.dims();
        let bound = match D {
            1 => 0.5,
            _ => 1.5 / (shape[0] as f32).sqrt(),
        };
        Param::from_tensor(self.numbers.tensor(shape, bound, self.device))
    }
}

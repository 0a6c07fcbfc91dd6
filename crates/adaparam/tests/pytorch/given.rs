use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adaparam::convert::StateDict;
use burn::tensor::{Device, Tensor, TensorData};

/// What a PyTorch module was given and gave; see `generate.py`.
pub(crate) struct Given {
    pub(crate) weights: StateDict,
    others: BTreeMap<String, TensorData>,
}

impl Given {
    pub(crate) fn read(name: &str) -> Self {
        let path = given(&format!("{name}.safetensors"));
        let bytes = std::fs::read(&path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let (mut weights, mut others) = (StateDict::new(), BTreeMap::new());
        for (name, view) in file.iter() {
            let chunks = view.data().as_chunks::<4>().0.iter();
            let values: Vec<f32> = chunks.map(|chunk| f32::from_le_bytes(*chunk)).collect();
            let data = TensorData::new(values, view.shape().to_vec());
            match name.strip_prefix("weights.") {
                Some(name) => weights.insert(name.to_owned(), data),
                None => others.insert(name.to_owned(), data),
            };
        }
        Self { weights, others }
    }

    pub(crate) fn tensor(&self, name: &str) -> Tensor<3> {
        Tensor::from_data(self.others[name].clone(), &Device::flex())
    }
}

/// A file of this folder.
pub(crate) fn given(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch");
    folder.join(name)
}

//! The kinds of recurrent layers that a configuration can name.

use std::sync::{Arc, PoisonError, RwLock};

use adaparam::recurrent::{
    AdaptiveGruSettings, AdaptiveLstmSettings, AdaptiveRnnSettings, GruSettings, HyperLstmSettings,
    LstmSettings, MelisLstmSettings, MiLstmSettings, MiRnnSettings, MinGruSettings,
    MinLstmSettings, MlstmSettings, MogrifierSettings, MrnnSettings, NasSettings, Recurrent,
    RecurrentKind, RhnSettings, RnnSettings, SlstmSettings, StackSizes, SvaLstmSettings,
};
use burn::tensor::Device;

use crate::choice::{AnySettings, Choice, Family, Registered, parse};

/// The settings of a kind of recurrent layers.
pub trait CellSettings: AnySettings {
    /// Layers of this kind, whose weights are drawn on first use.
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent>;
}

impl<K: RecurrentKind> CellSettings for K {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        RecurrentKind::init(self, sizes, device)
    }
}

/// The kinds of recurrent layers.
pub struct Cells;

/// A kind of recurrent layers with its settings: `[model.cell]`.
pub type CellChoice = Choice<Cells>;

static OTHERS: RwLock<Vec<Registered<Cells>>> = RwLock::new(Vec::new());

impl Family for Cells {
    type Settings = dyn CellSettings;
    const WHAT: &'static str = "cell";
    const DEFAULT: &'static str = "adaptive-lstm";

    fn kinds() -> Vec<Registered<Self>> {
        let mut kinds = vec![
            registered::<LstmSettings>(),
            registered::<AdaptiveLstmSettings>(),
            registered::<AdaptiveGruSettings>(),
            registered::<AdaptiveRnnSettings>(),
            registered::<SvaLstmSettings>(),
            registered::<GruSettings>(),
            registered::<RnnSettings>(),
            registered::<RhnSettings>(),
            registered::<NasSettings>(),
            registered::<MelisLstmSettings>(),
            registered::<MogrifierSettings>(),
            registered::<HyperLstmSettings>(),
            registered::<MrnnSettings>(),
            registered::<MlstmSettings>(),
            registered::<MiRnnSettings>(),
            registered::<MiLstmSettings>(),
            registered::<MinGruSettings>(),
            registered::<MinLstmSettings>(),
            registered::<SlstmSettings>(),
        ];
        kinds.extend(&*OTHERS.read().unwrap_or_else(PoisonError::into_inner));
        kinds
    }
}

fn registered<K: RecurrentKind>() -> Registered<Cells> {
    Registered::new::<K>(|values| {
        let settings: Arc<dyn CellSettings> = Arc::new(parse::<K>(values)?);
        Ok(settings)
    })
}

/// Makes a kind of recurrent layers known by its name, from now on: it can be configured, trained, saved, evaluated and
/// exported like the built-in ones.
///
/// # Panics
///
/// Panics if there is another kind of this name.
pub fn register<K: RecurrentKind>() {
    let new = registered::<K>();
    let is_known = Cells::kinds().iter().any(|kind| kind.name == new.name);
    assert!(
        !is_known,
        "there is a cell of the kind {} already",
        new.name
    );
    OTHERS
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .push(new);
}

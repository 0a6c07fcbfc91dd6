/// Something that recurrent layers have under a name, `width` numbers of it for each row of a batch: a state that they
/// carry from step to step, or a site of dropout.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Its name: `hidden` in a layer, `layers.0.hidden` in a stack.
    pub name: String,
    /// Numbers for each row of a batch.
    pub width: usize,
}

impl Slot {
    /// A slot.
    pub fn new(name: impl Into<String>, width: usize) -> Self {
        Self {
            name: name.into(),
            width,
        }
    }

    /// The same slot as part of layer `l` of a stack.
    #[must_use]
    pub fn in_layer(self, l: usize) -> Self {
        Self {
            name: format!("layers.{l}.{}", self.name),
            ..self
        }
    }

    /// What it is called in whichever layer it is: the last part of its name.
    pub fn kind(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// The layer of a stack that it belongs to.
    pub fn layer(&self) -> Option<usize> {
        let mut parts = self.name.split('.');
        (parts.next() == Some("layers"))
            .then(|| parts.next()?.parse().ok())
            .flatten()
    }
}

/// The names of slots, one after the other.
pub(crate) fn names(slots: &[Slot]) -> String {
    let names: Vec<&str> = slots.iter().map(|slot| slot.name.as_str()).collect();
    names.join(", ")
}

/// Whether slots have the same names in the same order.
pub(crate) fn same_names(a: &[Slot], b: &[Slot]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name)
}

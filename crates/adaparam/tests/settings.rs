//! Keys that are declared once: by the layers here, and by anyone else with `settings!`.

use adaparam::recurrent::{
    AdaptiveLstmSettings, LstmAdaptation, LstmSettings, PolicyModel, RecurrentKind, StackSizes,
};
use adaparam::settings::{Only, Settings, ascending, not_negative, positive, probability, within};
use burn::tensor::Device;
use serde_json::{Value, from_value, json, to_value};

adaparam::settings! {
    /// A key of each sort.
    pub struct Kettle {
        /// degrees to stop at
        pub degrees: usize = 100, within(1..=100);
        /// how often it fails
        ///
        /// Of this, only the first line is shown.
        pub failure: f64 = 0.5, probability();
        /// litres in it
        pub litres: f64 = 1.5, positive();
        /// grams of scale in it
        pub scale: f64 = 0.0, not_negative();
        /// minutes at which it whistles
        pub whistles: Vec<usize> = vec![1, 2], ascending();
        /// whose it is
        pub owner: Option<String> = None => Training;
        /// water in it when new, in litres
        pub filled: f64 = 0.5, not_negative() => Start;
    }
}

#[test]
fn keys_are_declared_once_and_in_order() {
    let keys: Vec<_> = Kettle::KEYS
        .iter()
        .map(|key| (key.name, key.about))
        .collect();
    assert_eq!(
        keys,
        [
            ("degrees", "degrees to stop at"),
            ("failure", "how often it fails"),
            ("litres", "litres in it"),
            ("scale", "grams of scale in it"),
            ("whistles", "minutes at which it whistles"),
            ("owner", "whose it is"),
            ("filled", "water in it when new, in litres"),
        ]
    );
}

#[test]
fn keys_that_only_the_start_or_training_looks_at_say_so() {
    let said: Vec<_> = Kettle::KEYS
        .iter()
        .filter_map(|key| Some((key.name, key.only?)))
        .collect();
    assert_eq!(said, [("owner", Only::Training), ("filled", Only::Start)]);
}

#[test]
fn what_is_not_said_is_the_default() {
    let said: Kettle = from_value(json!({})).expect("nothing has to be said");
    assert_eq!(said, Kettle::default());
    let said: Kettle = from_value(json!({ "litres": 2.0 })).expect("litres is a key");
    let expected = Kettle {
        litres: 2.0,
        ..Kettle::default()
    };
    assert_eq!(said, expected);
    assert_eq!(said.check(), Ok(()));
}

#[test]
fn an_unknown_key_is_refused_by_name() {
    let refused = from_value::<Kettle>(json!({ "colour": "red" })).expect_err("no such key");
    let words = refused.to_string();
    assert!(
        words.starts_with("unknown field `colour`, expected one of `degrees`"),
        "{words}"
    );
    let refused = from_value::<LstmSettings>(json!({ "latent": 3 })).expect_err("no such key");
    assert_eq!(
        refused.to_string(),
        "unknown field `latent`, expected one of `bias`, `second_bias`, `inter_layer`, `start`, `bound`"
    );
    from_value::<AdaptiveLstmSettings>(json!({ "latnet": 3 })).expect_err("no such key");
}

#[test]
fn a_value_of_another_type_is_refused() {
    from_value::<Kettle>(json!({ "degrees": "hot" })).expect_err("degrees are a number");
    from_value::<Kettle>(json!({ "degrees": -1 })).expect_err("degrees are not negative");
    from_value::<AdaptiveLstmSettings>(json!({ "policy": "clever" })).expect_err("no such policy");
}

#[test]
fn a_value_that_breaks_the_rule_of_its_key_is_named_with_the_rule() {
    let fault = |changed: Value| {
        let kettle: Kettle = from_value(changed).expect("the types are right");
        kettle.check().expect_err("a rule is broken").to_string()
    };
    for (changed, words) in [
        (
            json!({ "degrees": 101 }),
            "degrees = 101: must be from 1 to 100",
        ),
        (
            json!({ "failure": 1.0 }),
            "failure = 1.0: must be at least 0 and below 1",
        ),
        (
            json!({ "litres": 0.0 }),
            "litres = 0.0: must be a number above 0",
        ),
        (
            json!({ "scale": -0.1 }),
            "scale = -0.1: must be a number of at least 0",
        ),
        (
            json!({ "whistles": [2, 2] }),
            "whistles = [2, 2]: must be ascending",
        ),
        // The first of several.
        (
            json!({ "litres": 0.0, "degrees": 0 }),
            "degrees = 0: must be from 1 to 100",
        ),
    ] {
        assert_eq!(fault(changed), words);
    }
    let settings = AdaptiveLstmSettings {
        latent: 0,
        ..AdaptiveLstmSettings::default()
    };
    let fault = settings.check().expect_err("a rule is broken");
    assert_eq!(
        fault.within("model.cell").to_string(),
        "model.cell.latent = 0: must be from 1 to 65536"
    );
}

/// What holds for the settings of any kind of layers.
fn assert_declared<K: RecurrentKind>() {
    let written = to_value(K::default()).expect("settings can be written");
    let names: Vec<&str> = K::KEYS.iter().map(|key| key.name).collect();
    // Keys that came later are not written while they have their defaults.
    let mut written_names = written.as_object().expect("settings are a map").keys();
    assert!(
        written_names.all(|name| names.contains(&name.as_str())),
        "{}",
        K::KIND
    );
    assert!(K::KEYS.iter().all(|key| !key.about.is_empty()));
    assert_eq!(
        from_value::<K>(written).expect("what was written can be read"),
        K::default()
    );
    assert_eq!(K::default().check(), Ok(()));
}

#[test]
fn the_keys_of_every_kind_are_those_that_are_read_and_written() {
    assert_declared::<LstmSettings>();
    assert_declared::<AdaptiveLstmSettings>();
}

#[test]
fn a_kind_makes_the_layers_that_its_settings_describe() {
    let sizes = StackSizes {
        d_output: 6,
        ..StackSizes::new(5, 7, 2)
    };
    let lstm = LstmSettings {
        bias: false,
        ..LstmSettings::default()
    }
    .init(sizes, &Device::flex());
    assert_eq!((lstm.d_input(), lstm.d_output()), (5, 6));
    assert_eq!(lstm.states().len(), 4);
    assert_eq!(lstm.parameter_shapes().len(), 4);

    let settings = AdaptiveLstmSettings {
        latent: 3,
        policy: PolicyModel::Static,
        adaptation: LstmAdaptation::Output,
        ..AdaptiveLstmSettings::default()
    };
    let lstm = settings.init(sizes, &Device::flex());
    assert_eq!((lstm.d_input(), lstm.d_output()), (5, 6));
    assert_eq!(lstm.states().len(), 6);
    let shapes = lstm.parameter_shapes();
    assert!(shapes.contains(&("layers.0.latent.weight".to_owned(), vec![15, 3])));
    assert!(shapes.contains(&("layers.0.projection".to_owned(), vec![3, 84])));
}

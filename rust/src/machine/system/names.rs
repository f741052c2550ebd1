//! Enumerations that Python chooses from by name. Each is declared once, by `named!`: the variants, their names, and the
//! message for a name that is none of them come from one list, so that none can be left out of another.

/// `pub enum Kind: "what a message calls it" { Variant = "name", ... }` with `NAMES`, `ALL`, `name` and `named`.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident: $what:literal { $($(#[$doc:meta])* $Variant:ident = $name:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Enum { $($(#[$doc])* $Variant,)+ }

        impl $Enum {
            /// Every variant, in the order of its declaration.
            pub const ALL: &'static [$Enum] = &[$($Enum::$Variant),+];

            pub fn name(self) -> &'static str {
                match self { $($Enum::$Variant => $name,)+ }
            }

            /// The names of all, as messages and Python have them.
            pub fn names() -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().map(|x| x.name())
            }

            pub fn named(name: &str) -> $crate::error::Result<$Enum> {
                Self::ALL.iter().copied().find(|x| x.name() == name).ok_or_else(|| {
                    let known = Self::names().collect::<Vec<_>>().join(", ");
                    $crate::error::Error::Value(format!("no {} {name:?}; there are: {known}", $what))
                })
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    named!(
        pub enum Colour: "colour" {
            Red = "red",
            Green = "dark green",
        }
    );

    #[test]
    fn a_name_and_its_variant_belong_together() {
        for &colour in Colour::ALL {
            assert_eq!(Colour::named(colour.name()), Ok(colour));
        }
        assert_eq!(Colour::names().collect::<Vec<_>>(), ["red", "dark green"]);
        let message = Colour::named("blue").unwrap_err().to_string();
        assert_eq!(message, "no colour \"blue\"; there are: red, dark green");
    }
}

/// The version that `larder version`, `/stats` and `/metrics` show.
package let larderVersion = "0.1.0"

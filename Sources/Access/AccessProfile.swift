/// A set of rules with a name. An allow rule that names one is replaced by the rules of the profile when the configuration is loaded.
package enum AccessProfile: String, CaseIterable, Sendable {
    /// Reading packages from the hosts of `recipes`, at the paths that the recipes know.
    case packagesRead = "packages-read"
    /// Fetching and downloading source code with git over HTTP, and no pushing.
    case sourceRead = "source-read"
    /// POST to named paths of named hosts.
    case modelAPI = "model-api"
}

import Provisioning

private let configurationPaths = ["larder.yaml", "/etc/larder/larder.yaml"]

/// Reads the file that `--config` names, or the first of the usual files that exists. If there is none, the defaults apply.
func readConfiguration(_ arguments: Arguments) -> ConfigurationReading {
    guard let file = arguments[.config] ?? configurationPaths.first(where: fileExists) else {
        return readDefaultConfiguration()
    }
    return readConfiguration(file: file)
}

import Access
import Server
import Settings
import Tokens

/// Reads the files that `access.authentication` names. Blocks.
///
/// - Parameter fetched: the keys of tokens that come from a URL. Nil: they are still to be fetched.
func readAuthentication(
    _ settings: AuthenticationSettings, fetched: JSONWebKeySet?
) throws(ProvisioningFault) -> AuthenticationMaterial {
    var material = AuthenticationMaterial()
    if let path = settings.basic.usersFile {
        material.users = try readUsers(path, key: "access.authentication.basic.users")
    }
    if let path = settings.bearer.tokensFile { material.tokens = try readTokens(path) }
    switch settings.bearer.keys {
    case .file(let path): material.tokenKeys = try readKeys(path)
    case .url: material.tokenKeys = fetched
    case nil: break
    }
    return material
}

/// The keys that were fetched for an earlier configuration, if the new one has them from the same URL.
func fetchedKeys(of earlier: Snapshot, for configuration: Configuration) -> JSONWebKeySet? {
    let (old, new) = (earlier.configuration.access.authentication, configuration.access.authentication)
    guard case .url = new.bearer.keys, old.bearer.keys == new.bearer.keys else { return nil }
    return earlier.authentication.material.tokenKeys
}

extension AuthenticationSettings {
    /// The files that are read again when they change.
    var files: [String] {
        var files = [basic.usersFile, bearer.tokensFile].compactMap { $0 }
        if case .file(let path) = bearer.keys { files.append(path) }
        return files
    }
}

private func readUsers(_ path: String, key: String) throws(ProvisioningFault) -> HtpasswdFile {
    let (file, errors) = HtpasswdFile.parse(try read(path, key: key))
    if let first = errors.first { throw ProvisioningFault(key, "\(path):\(first)") }
    return file
}

private func readTokens(_ path: String) throws(ProvisioningFault) -> TokenFile {
    let key = "access.authentication.bearer.tokens"
    let (file, errors) = TokenFile.parse(try read(path, key: key))
    if let first = errors.first { throw ProvisioningFault(key, "\(path): \(first)") }
    return file
}

private func readKeys(_ path: String) throws(ProvisioningFault) -> JSONWebKeySet {
    let key = "access.authentication.bearer.jwt.jwks"
    let text = try read(path, key: key)
    do throws(KeySetFault) {
        return try JSONWebKeySet(parsing: text, allowsShared: true)
    } catch {
        throw ProvisioningFault(key, "\(path) cannot be used: \(error.text)")
    }
}

private func read(_ path: String, key: String) throws(ProvisioningFault) -> [UInt8] {
    do throws(FileError) { return try readFile(path) } catch { throw ProvisioningFault(key, error.text) }
}

import Authentication
import Credentials
import EventLoop
import Glibc
import Kerberos
import LogIns
import Server
import Settings
import TLS
import Texts
import Tokens

/// Reads the files that `access.authentication` names. Blocks.
///
/// - Parameter fetched: the keys of tokens that come from a URL. Nil: they are still to be fetched.
func readAuthentication(
    _ settings: AuthenticationSettings, fetched: JSONWebKeySet?, _ preparation: inout Preparation
) throws(ProvisioningFault) -> AuthenticationMaterial {
    var material = AuthenticationMaterial()
    if let path = settings.basic.usersFile {
        try preparation.attempt { () throws(ProvisioningFault) in
            material.users = try readUsers(
                path, key: "access.authentication.basic.users", allowsWeak: settings.basic.weakHashes == .allow)
        }
    }
    if let path = settings.digest.usersFile {
        try preparation.attempt { () throws(ProvisioningFault) in
            material.digestUsers = try readDigestUsers(
                path, settings.digest, key: "access.authentication.digest.users")
        }
    }
    if let path = settings.groupsFile {
        try preparation.attempt { () throws(ProvisioningFault) in material.groups = try readGroups(path) }
    }
    if let path = settings.bearer.tokensFile {
        try preparation.attempt { () throws(ProvisioningFault) in material.tokens = try readTokens(path) }
    }
    try preparation.attempt { () throws(ProvisioningFault) in
        material.directoryPassword = try readDirectoryPassword(settings.directory)
    }
    switch settings.bearer.keys {
    case .file(let path):
        try preparation.attempt { () throws(ProvisioningFault) in material.tokenKeys = try readKeys(path) }
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

/// Why the keytab of Negotiate cannot be used. Nil if it can, or if none is configured. Reads it.
///
/// This is no error: whoever makes keytabs may come later, and the other schemes work meanwhile.
func faultOfKeytab(_ settings: NegotiateSettings) -> String? {
    guard let keytab = settings.keytab else { return nil }
    let consequence = "requests with a token of Negotiate get 503 until it can be used"
    do throws(FileError) { _ = try readFile(keytab) } catch { return "\(error.text); \(consequence)" }
    do throws(GSSAPIFailure) {
        _ = try AcceptorCredential(keytab: keytab, principal: settings.principal)
        return nil
    } catch {
        return "\(keytab): \(error.text); \(consequence)"
    }
}

/// What an administrator should know of files that can be used.
func remarks(on material: AuthenticationMaterial, _ settings: AuthenticationSettings) -> [String] {
    var remarks: [String] = []
    if let path = settings.digest.usersFile {
        let weak = material.digestUsers.usersOfMD5Alone
        if let first = weak.first {
            remarks.append(
                "\(path): \(weak.count == 1 ? "user \(first) has" : "\(weak.count) users, \(first) among them, have") an MD5 hash alone, "
                    + "and can be guessed fast; larder passwd --digest sets SHA-256 as well")
        }
        if settings.digest.md5 == .no, !weak.isEmpty {
            remarks.append("\(path): these users cannot log in while access.authentication.digest.md5 is no")
        }
        if material.digestUsers.users.isEmpty {
            remarks.append("\(path): no user of the realm \(settings.digest.realm)")
        }
    }
    let secretFiles = [
        settings.basic.usersFile, settings.digest.usersFile, settings.bearer.tokensFile,
        settings.directory.accountPasswordFile, settings.negotiate.keytab,
    ]
    for path in secretFiles.compactMap(\.self) {
        var status = stat()
        if unsafe stat(path, &status) == 0, status.st_mode & 0o007 != 0 {
            remarks.append("\(path) can be read by everybody; chmod 640 \(shellWord(path))")
        }
    }
    return remarks
}

private func readUsers(_ path: String, key: String, allowsWeak: Bool) throws(ProvisioningFault) -> HtpasswdFile {
    let (file, errors) = HtpasswdFile.parse(try contents(of: path, key: key), allowsWeak: allowsWeak)
    if let first = errors.first { throw ProvisioningFault(key, "\(path):\(first)") }
    return file
}

private func readGroups(_ path: String) throws(ProvisioningFault) -> GroupsFile {
    let key = "access.authentication.groups"
    let (file, wrongLines) = GroupsFile.parse(try contents(of: path, key: key))
    if let line = wrongLines.first {
        throw ProvisioningFault(key, "\(path):line \(line): expected group: user user")
    }
    return file
}

private func readDigestUsers(
    _ path: String, _ settings: DigestSettings, key: String
) throws(ProvisioningFault) -> DigestFile {
    let (file, errors) = DigestFile.parse(try contents(of: path, key: key), realm: settings.realm)
    if let first = errors.first { throw ProvisioningFault(key, "\(path):\(first)") }
    return file
}

/// The first line of the file.
private func readDirectoryPassword(_ directory: DirectorySettings) throws(ProvisioningFault) -> Secret? {
    guard let path = directory.accountPasswordFile else { return nil }
    let key = "access.authentication.directory.password_file"
    let line = try firstLine(path, key: key)
    // A bind without a password succeeds without proving anything (RFC 4513 §5.1.2).
    guard !line.isEmpty else { throw ProvisioningFault(key, "\(path): its first line is empty") }
    return Secret(line)
}

/// Reads the authorities whom the directory's certificate may come from, and throws what is wrong with them.
func checkDirectoryAuthorities(_ configuration: Configuration) throws(ProvisioningFault) {
    let directory = configuration.access.authentication.directory
    guard directory.urls.contains(where: directory.isSecured) else { return }
    let path = directoryAuthorities(configuration)
    let key = "access.authentication.directory.ca_file"
    let text: [UInt8]
    do throws(FileError) { text = try readFile(path) } catch {
        throw ProvisioningFault(
            key, error.text, hint: directory.authorityFile == nil ? "name the authorities of the directory" : nil)
    }
    var options = TLSClientOptions()
    options.authorities = .pem(text)
    do throws(TLSContextError) { _ = try TLSClientContext(options) } catch {
        guard case .authoritiesUnreadable(let reason) = error else { throw ProvisioningFault(key, "\(error)") }
        throw ProvisioningFault(key, "\(path): \(reason)")
    }
}

private func readTokens(_ path: String) throws(ProvisioningFault) -> TokenFile {
    let key = "access.authentication.bearer.tokens"
    let (file, errors) = TokenFile.parse(try contents(of: path, key: key))
    if let first = errors.first { throw ProvisioningFault(key, "\(path): \(first)") }
    return file
}

private func readKeys(_ path: String) throws(ProvisioningFault) -> JSONWebKeySet {
    let key = "access.authentication.bearer.jwt.jwks"
    let text = try contents(of: path, key: key)
    do throws(KeySetFault) {
        return try JSONWebKeySet(parsing: text, allowsShared: true)
    } catch {
        throw ProvisioningFault(key, "\(path) cannot be used: \(error.text)")
    }
}

import Access

/// Reads the files that `access.authentication` names. Blocks.
func readAuthentication(_ settings: AuthenticationSettings) throws(ProvisioningFault) -> AuthenticationMaterial {
    var material = AuthenticationMaterial()
    if let path = settings.basic.usersFile {
        material.users = try readUsers(path, key: "access.authentication.basic.users")
    }
    return material
}

private func readUsers(_ path: String, key: String) throws(ProvisioningFault) -> HtpasswdFile {
    let text: [UInt8]
    do throws(FileError) { text = try readFile(path) } catch { throw ProvisioningFault(key, error.text) }
    let (file, errors) = HtpasswdFile.parse(text)
    if let first = errors.first { throw ProvisioningFault(key, "\(path):\(first)") }
    return file
}

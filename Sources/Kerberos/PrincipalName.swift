import CGSSAPI

/// A `gss_name_t`: who proves something, or to whom.
@safe struct PrincipalName: ~Copyable {
    let name: gss_name_t?

    init(_ text: String, _ kind: ObjectIdentifier) throws(GSSAPIFailure) {
        var minor: OM_uint32 = 0
        var made: gss_name_t?
        let major = unsafe withBuffer(Array(text.utf8)) { buffer in
            unsafe kind.lend { unsafe gss_import_name(&minor, buffer, $0, &made) }
        }
        guard !isError(major) else { throw GSSAPIFailure(.name, major: major, minor: minor) }
        unsafe name = unsafe made
    }

    deinit {
        var minor: OM_uint32 = 0
        var name = unsafe name
        unsafe gss_release_name(&minor, &name)
    }
}

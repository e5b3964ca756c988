import COpenSSL

extension Certificate {
    /// Nil if the certificate has none. Constraints on other names than host names, addresses and subjects concern no leaf.
    var nameConstraints: NameConstraints? {
        guard let value = unsafe X509_get_ext_d2i(raw, NID_name_constraints, nil, nil) else { return nil }
        let found = unsafe value.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
        defer { unsafe NAME_CONSTRAINTS_free(found) }
        var constraints = NameConstraints()
        for subtree in unsafe Subtree.all(in: found.pointee.permittedSubtrees) {
            switch subtree {
            case .name(let name): constraints.permittedNames.append(name)
            case .addresses(let range): constraints.permittedAddresses.append(range)
            case .subject: constraints.constrainsSubjects = true
            case .other: break
            }
        }
        for subtree in unsafe Subtree.all(in: found.pointee.excludedSubtrees) {
            switch subtree {
            case .name(let name): constraints.excludedNames.append(name)
            case .addresses(let range): constraints.excludedAddresses.append(range)
            case .subject: constraints.constrainsSubjects = true
            case .other: break
            }
        }
        return constraints
    }
}

private enum Subtree {
    case name(String)
    case addresses(NameConstraints.AddressRange)
    case subject
    case other

    @unsafe static func all(in stack: OpaquePointer?) -> [Subtree] {
        guard let stack = unsafe stack else { return [] }
        return (0..<(unsafe OPENSSL_sk_num(stack))).compactMap { index in
            unsafe OPENSSL_sk_value(stack, index).map {
                unsafe Subtree($0.assumingMemoryBound(to: GENERAL_SUBTREE.self))
            }
        }
    }

    private init(_ subtree: UnsafeMutablePointer<GENERAL_SUBTREE>) {
        guard let base = unsafe subtree.pointee.base else {
            self = .other
            return
        }
        switch unsafe base.pointee.type {
        case GEN_DNS:
            self = unsafe .name(String(decoding: octets(of: base.pointee.d.dNSName), as: UTF8.self).lowercased())
        case GEN_IPADD:
            let bytes = unsafe octets(of: base.pointee.d.iPAddress)
            let half = bytes.count / 2
            guard bytes.count == 8 || bytes.count == 32 else {
                self = .other
                return
            }
            self = .addresses(.init(address: Array(bytes[..<half]), mask: Array(bytes[half...])))
        case GEN_DIRNAME: self = .subject
        default: self = .other
        }
    }
}

import Routing
package import Origins
package import Settings
import Synchronization
package import TLS

/// What a rule of `origins` says about TLS, with what its files contain.
package struct TLSMaterial: Sendable {
    /// The number of the rule.
    package let rule: Int
    package let settings: OriginTLS
    package let options: TLSClientOptions
    /// A digest of all files. If the settings and the files are the same as before, so is the profile.
    package let digest: [UInt8]

    package init(rule: Int, _ settings: OriginTLS, _ options: TLSClientOptions, digest: [UInt8]) {
        self.rule = rule
        self.settings = settings
        self.options = options
        self.digest = digest
    }
}

/// The contexts for TLS with origins and next proxies: the general one, and one for each profile of `origins`.
struct TLSContexts: Sendable {
    private struct Source: Hashable {
        let settings: OriginTLS
        let digest: [UInt8]
        /// What a rule leaves out is as in `tls`.
        let general: TLSSettings
    }
    private static let lastNumber = Atomic<UInt32>(TLSProfile.general.number)

    private let general: TLSClientContext
    private var sources: [Source: TLSProfile] = [:]
    private var contexts: [TLSProfile: TLSClientContext] = [:]
    /// By the number of the rule.
    private(set) var profiles: [Int: TLSProfile] = [:]

    /// Makes all contexts anew, so that they trust what the system trusts now.
    ///
    /// - Parameter earlier: the contexts in use. Where settings and files are the same, so is the profile, and its connections go on.
    init(_ settings: TLSSettings, _ materials: [TLSMaterial], after earlier: TLSContexts?) throws(TLSContextError) {
        general = try TLSClientContext(TLSClientOptions(settings))
        for material in materials {
            let source = Source(settings: material.settings, digest: material.digest, general: settings)
            let profile = sources[source] ?? earlier?.sources[source] ?? TLSContexts.newProfile(material.settings)
            sources[source] = profile
            profiles[material.rule] = profile
            if contexts[profile] == nil { contexts[profile] = try TLSClientContext(material.options) }
        }
    }

    private static func newProfile(_ settings: OriginTLS) -> TLSProfile {
        TLSProfile(lastNumber.add(1, ordering: .relaxed).newValue, settings)
    }

    /// - Parameter profile: the general one, or one of the same configuration.
    subscript(_ profile: TLSProfile) -> TLSClientContext {
        if profile == .general { return general }
        guard let context = contexts[profile] else { preconditionFailure("a profile belongs to another configuration") }
        return context
    }
}

extension TLSClientOptions {
    /// For all origins.
    package init(_ settings: TLSSettings) {
        self.init()
        authorities = settings.caFile.map { .file($0) } ?? .system
        versions = Version(settings.minVersion) ... .tls13
    }

    /// For the origins of a rule, without what its files contain.
    package init(_ rule: OriginTLS, over settings: TLSSettings) {
        self.init(settings)
        let minimum = rule.minVersion ?? settings.minVersion
        versions = Version(minimum)...Version(max(rule.maxVersion ?? .v1_3, minimum))
        verification = rule.verification == .required ? .required : .none
        pinnedKeys = rule.pins.map(\.digest)
    }
}

extension TLSClientOptions.Version {
    fileprivate init(_ version: TLSVersion) {
        switch version {
        case .v1_2: self = .tls12
        case .v1_3: self = .tls13
        }
    }
}

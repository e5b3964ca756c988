/// Checks the settings of a fleet that depend on each other.
func fleetErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let section = "fleet"
    guard let line = reader.lines[section], !reader.hasErrors(in: section) else { return [] }
    let fleet = configuration.fleet
    guard let url = fleet.redis else {
        return [reader.error("fleet.redis.url", line: line, "missing", hint: "name the Redis, or remove fleet")]
    }
    var errors: [ConfigurationError] = []
    func refuse(_ key: String, _ message: String, hint: String? = nil) {
        errors.append(
            reader.error("\(section).\(key)", line: reader.lines["\(section).\(key)"] ?? line, message, hint: hint))
    }
    if fleet.secretFile == nil {
        refuse(
            "secret_file", "missing",
            hint: "every node has the same secret: openssl rand -hex 32 > /etc/larder/fleet.secret")
    }
    if fleet.authorityFile != nil, !url.isSecured {
        refuse("redis.ca_file", "the URL does not use TLS", hint: "use rediss://")
    }
    if url.user != nil, fleet.passwordFile == nil {
        refuse("redis.password_file", "missing", hint: "a user of Redis logs in with a password")
    }
    return errors
}

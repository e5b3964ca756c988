/// What `larder version`, `/stats` and the access log call this build.
package let larderVersion = "0.1.0"

# How Kafka's programs are started. KAFKA_LIB: the directory of its jars, by default that which pom.xml fills.
KAFKA_LIB=${KAFKA_LIB:-$here/lib}

# kafka CLASS ARGUMENT…: takes the place of this shell.
kafka() {
  exec java -Xmx${JAVA_HEAP:-256m} -Dlog4j2.configurationFile="$here/log4j2.properties" -cp "$KAFKA_LIB/*" "$@"
}

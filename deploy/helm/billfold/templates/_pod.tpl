{{- define "billfold.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
automountServiceAccountToken: false
terminationGracePeriodSeconds: 60
containers:
  - name: billfold
    {{- with .root.Values.image }}
    image: "{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.root.Chart.AppVersion }}{{ end }}"
    {{- end }}
    args: {{ .args | toJson }}
    envFrom:
      - configMapRef: {name: {{ .settings }}}
      - secretRef: {name: {{ .root.Values.secret }}}
      {{- if .owns }}
      - secretRef: {name: {{ .root.Values.ownerSecret }}}
      {{- end }}
    env: {{ .env | toJson }}
    ports: {{ .ports | toJson }}
    {{- if .probed }}
    startupProbe:
      httpGet: {path: /livez, port: management}
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /livez, port: management}
      periodSeconds: 10
    readinessProbe:
      httpGet: {path: /readyz, port: management}
      periodSeconds: 2
      timeoutSeconds: 5
    {{- end }}
    resources: {{ .root.Values.resources | toJson }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: state, mountPath: /var/lib/billfold}
      - {name: tmp, mountPath: /tmp}
volumes:
  - name: tmp
    emptyDir: {}
  - name: state
    {{- if .root.Values.stateClaim }}
    persistentVolumeClaim: {claimName: {{ .root.Values.stateClaim }}}
    {{- else }}
    emptyDir: {}
    {{- end }}
{{- end }}

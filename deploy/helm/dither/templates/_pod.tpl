{{/* What the migration and the service have in common. */}}
{{- define "dither.image" -}}
{{- with .Values.image.digest }}{{ $.Values.image.repository }}@{{ . }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "dither.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
volumes:
  # Settings may be files here; secrets do not show among the variables of a process then.
  - name: secrets
    secret: {secretName: {{ .Values.secretName }}, defaultMode: 0440}
  - name: scratch
    emptyDir: {}
{{- end }}

{{- define "dither.container" -}}
image: {{ include "dither.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets, readOnly: true}
  - {name: scratch, mountPath: /tmp}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - {name: DITHER_PUBLIC_URL, value: {{ required "publicUrl is required: https:// and the name people use" .Values.publicUrl | quote }}}
  {{- range $name, $value := .Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
{{- end }}

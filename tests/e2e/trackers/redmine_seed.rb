# Makes users, a workflow and projects; prints what the tests have to know.
require 'json'
ActiveRecord::Base.transaction do
  Setting.rest_api_enabled = '1'
  states = %w[Todo Doing Review Done Never].to_h do |name|
    [name, IssueStatus.create!(:name => name, :is_closed => name == 'Done')]
  end
  kind = Tracker.create!(:name => 'Chore', :default_status => states['Todo'])
  IssuePriority.create!(:name => 'Usual', :is_default => true)
  moves = [%w[Todo Doing], %w[Todo Review], %w[Doing Todo], %w[Doing Review], %w[Doing Done], %w[Review Done]]
  may = {
    'agent' => [:view_issues, :edit_issues, :add_issue_notes, :add_issues],
    'silent' => [:view_issues, :edit_issues],
    'viewer' => [:view_issues],
  }
  project, hidden = %w[seen hidden].map do |name|
    Project.create!(:name => name, :identifier => name, :trackers => [kind], :is_public => false,
                    :enabled_module_names => ['issue_tracking'])
  end
  keys = may.to_h do |name, permissions|
    role = Role.create!(:name => "role of #{name}", :permissions => permissions)
    moves.each do |from, to|
      WorkflowTransition.create!(:role_id => role.id, :tracker_id => kind.id,
                                 :old_status_id => states[from].id, :new_status_id => states[to].id)
    end
    user = User.new(:firstname => name, :lastname => 'Tester', :mail => "#{name}@example.org")
    user.login = name
    user.password = 'a-password-of-tests'
    user.save!
    Member.create!(:project => project, :user => user, :roles => [role])
    [name, user.api_key]
  end
  keys['admin'] = User.find_by_login('admin').api_key
  puts JSON.generate(:keys => keys, :project => project.id, :hidden => hidden.id, :tracker => kind.id)
end
